-- Projections: rows that follow from the log. They are made anew from the log where
-- they are missing, or of another log. They replace the two fixed indexes of before.
DROP TABLE view_mark, view_job, view_archived;
CREATE TABLE projection (
  id   integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL UNIQUE,     -- with its version
  seq  bigint NOT NULL,          -- read up to here
  kept bigint NOT NULL,          -- the last event up to there that is no sample
  sum  text NOT NULL             -- of that event's text
) WITH (fillfactor = 10);        -- updated at each write: room for it within its page
CREATE TABLE projection_row (
  projection integer NOT NULL,
  key        text COLLATE "C" NOT NULL, -- in byte order, as Go and SQLite compare
  value      bytea NOT NULL,
  PRIMARY KEY (projection, key)
) WITH (fillfactor = 80);
