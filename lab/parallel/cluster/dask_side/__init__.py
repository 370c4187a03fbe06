"""The one folder that touches what `distributed` does not promise: handlers, streams, restart of a worker.

On the scheduler a plugin leases workers, lets ranks meet, learns of deaths and tells all members; on each worker a
plugin keeps the seats of ranks; a client asks both. Control and events only: no array of a program passes here.
"""
