"""The bridge from outside, as a host sees it: a driver on its pipes, a person who clicks, and other bridges beside it.

`driver.py` is one session with any bridge; `conformance.py` runs the official suite's client side through it;
`situations.py` are the situations in which bridges were seen to fail, counted; `chaos.py` is a server that is cut down
and brought back at random.
"""
