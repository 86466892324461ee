"""What is kept, on SQLite and on Postgres alike: scenarios, their revisions, and benchmark runs.

Functions take a transaction of a `Database`, and ids and times as arguments: there is no clock and no
randomness here. They raise the classes of `service.errors`.
"""
