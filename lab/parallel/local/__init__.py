"""Ranks that go their own way and meet seldom: Local SGD, its outer step, and a parameter server as the contrast."""
