"""How bytes go from rank to rank: a door that opens to members only, and sockets that one poll loop serves."""
