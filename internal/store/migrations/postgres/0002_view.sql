-- Tables that follow the log: what it says in its order they say by job. They are made
-- anew from the log where they are empty, or of another log.
CREATE TABLE view_mark (
  one  boolean PRIMARY KEY DEFAULT true CHECK (one),
  seq  bigint NOT NULL,          -- read up to here
  kept bigint NOT NULL,          -- the last event up to there that is no sample
  sum  text NOT NULL             -- of that event's text
) WITH (fillfactor = 10);        -- updated at each write: room for it within its page
INSERT INTO view_mark (seq, kept, sum) VALUES (0, 0, '');
CREATE TABLE view_job (
  name   text PRIMARY KEY,
  events bytea NOT NULL          -- numbers of the events about it
) WITH (fillfactor = 80);
CREATE TABLE view_archived (
  name      text PRIMARY KEY,
  seq       bigint NOT NULL,     -- the event whose facts have its record
  submitted bigint NOT NULL,     -- the order of its submission
  state     text NOT NULL
);
CREATE UNIQUE INDEX view_archived_submitted ON view_archived (submitted);
