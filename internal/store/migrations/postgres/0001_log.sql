-- The log: one row an event, with what was decided and what was to be done, as
-- the bytes that were written (text, not jsonb: a hash is taken over them).
CREATE TABLE event (
  seq       bigint PRIMARY KEY,
  epoch     bigint NOT NULL,              -- the leader that wrote it
  tenant    text NOT NULL,
  at        bigint NOT NULL,              -- market time, nanoseconds since 1970
  kind      text NOT NULL,
  key       text,                         -- idempotency key; NULL for none
  event     text NOT NULL,
  decisions text,
  actions   text
);
CREATE INDEX event_key ON event (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX event_kind ON event (kind, seq);

-- One row moves money from one account to another, so every sum is zero.
CREATE TABLE posting (
  event    bigint NOT NULL REFERENCES event (seq),
  line     integer NOT NULL,
  tenant   text NOT NULL,
  job      text NOT NULL,
  currency text NOT NULL,
  source   text NOT NULL,
  target   text NOT NULL CHECK (target <> source),
  amount   numeric(39, 12) NOT NULL CHECK (amount > 0), -- currency units, exact
  posting  text NOT NULL,                               -- all of it, with its hashes
  PRIMARY KEY (event, line)
);
CREATE INDEX posting_job ON posting (tenant, job, event, line);

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% are never %', TG_ARGV[0], TG_ARGV[1]; END $$;
CREATE TRIGGER event_stays BEFORE UPDATE ON event FOR EACH STATEMENT EXECUTE FUNCTION refuse('events', 'changed');
CREATE TRIGGER event_kept BEFORE DELETE OR TRUNCATE ON event FOR EACH STATEMENT EXECUTE FUNCTION refuse('events', 'deleted');
CREATE TRIGGER posting_stays BEFORE UPDATE ON posting FOR EACH STATEMENT EXECUTE FUNCTION refuse('postings', 'changed');
CREATE TRIGGER posting_kept BEFORE DELETE OR TRUNCATE ON posting FOR EACH STATEMENT EXECUTE FUNCTION refuse('postings', 'deleted');

CREATE TABLE snapshot (
  seq     bigint PRIMARY KEY,
  version integer NOT NULL
);
CREATE TABLE snapshot_part (
  seq   bigint NOT NULL,
  part  integer NOT NULL,  -- counts from 0
  bytes bytea NOT NULL,
  PRIMARY KEY (seq, part)
);
ALTER TABLE snapshot_part ALTER COLUMN bytes SET STORAGE EXTERNAL; -- read and written whole: compressing it costs more than it saves

CREATE TABLE meta (
  key   text PRIMARY KEY,
  value text NOT NULL
);

-- Who leads. Every write holds this row and names its epoch; a takeover raises
-- the epoch, so what an earlier leader still sends finds no row. The end of the
-- log stands here too: an append moves it from where the writer believes it is.
CREATE TABLE leader (
  one    boolean PRIMARY KEY DEFAULT true CHECK (one),
  epoch  bigint NOT NULL,
  holder text NOT NULL,          -- for people: host and process
  since  timestamptz NOT NULL,
  until  timestamptz NOT NULL,   -- by the database's clock; nobody else's counts
  seq    bigint NOT NULL         -- the last event
) WITH (fillfactor = 10);        -- updated at each write: room for it within its page
INSERT INTO leader (epoch, holder, since, until, seq) VALUES (0, '', '-infinity', '-infinity', 0);
