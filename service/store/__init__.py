"""What is kept, on SQLite and on Postgres alike: scenarios with revisions, benchmark runs, keys, and who changed what.

Whatever belongs to a workspace is asked for with its id: what is another's is not there.
Functions take a transaction of a `Database`, and ids and times as arguments: there is no clock and no
randomness here. They raise the classes of `service.errors`.
"""
