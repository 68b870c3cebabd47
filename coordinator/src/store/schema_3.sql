-- The fence of those who write the window outside of this database; one row. It grows with every start of a coordinator,
-- and begins at the time the run was created, so that a later run of the same name has a higher one.
CREATE TABLE window_fence (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    fence INTEGER NOT NULL
) STRICT;
