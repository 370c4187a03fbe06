"""The gallery: every view beside every other, from recordings of runs that take place when it is made."""
