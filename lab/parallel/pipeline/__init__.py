"""A model in stages, one a rank: who hands what to whom, on a real or on a paced device."""
