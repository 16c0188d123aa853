-- Texts that many rows share. A row has their numbers: 20 bytes less each.
CREATE TABLE tenant (
  id   integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL UNIQUE
);
CREATE TABLE kind (
  id   smallint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  name text NOT NULL UNIQUE
);

-- The log: one row an event, with the facts that follow from it, as the bytes that
-- were written (text, not jsonb: a hash is taken over them). No column is NULL, so
-- that a row has no map of them.
CREATE TABLE event (
  seq    bigint PRIMARY KEY WITH (fillfactor = 100), -- it grows at its end only
  at     bigint NOT NULL,                      -- market time, nanoseconds since 1970
  epoch  integer NOT NULL,                     -- the leader that wrote it
  gap    integer NOT NULL CHECK (gap >= 0),    -- samples between it and the event before it
  tenant integer NOT NULL,
  kind   smallint NOT NULL,
  key    text NOT NULL,                        -- idempotency key; '' for none
  event  text NOT NULL,
  facts  text NOT NULL                         -- a JSON list; '' for none
);
CREATE INDEX event_key ON event (tenant, key) WHERE key <> '';
CREATE INDEX event_kind ON event (kind);       -- equal entries lie together: 7 bytes an event instead of 40 with seq

-- Samples share the numbers of the log. They are never changed, and deleted when
-- no snapshot needs them.
CREATE TABLE sample (
  seq    bigint PRIMARY KEY WITH (fillfactor = 100),
  at     bigint NOT NULL,
  epoch  integer NOT NULL,
  gap    integer NOT NULL CHECK (gap >= 0),
  tenant integer NOT NULL,
  kind   smallint NOT NULL,
  key    text NOT NULL,
  event  text NOT NULL
);
CREATE INDEX sample_key ON sample (tenant, key) WHERE key <> '';
CREATE INDEX sample_kind ON sample (kind);

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
  hash     bytea NOT NULL,                              -- covers all of it, and the hash of the tenant's posting before it
  rest     bytea NOT NULL,                              -- what is no column
  PRIMARY KEY (event, line)
);
CREATE INDEX posting_job ON posting (tenant, job);      -- equal entries lie together

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION '% are never %', TG_ARGV[0], TG_ARGV[1]; END $$;
CREATE TRIGGER event_stays BEFORE UPDATE ON event FOR EACH STATEMENT EXECUTE FUNCTION refuse('events', 'changed');
CREATE TRIGGER event_kept BEFORE DELETE OR TRUNCATE ON event FOR EACH STATEMENT EXECUTE FUNCTION refuse('events', 'deleted');
CREATE TRIGGER sample_stays BEFORE UPDATE ON sample FOR EACH STATEMENT EXECUTE FUNCTION refuse('samples', 'changed');
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
  seq    bigint NOT NULL,        -- the last of the log
  kept   bigint NOT NULL         -- the last of it that is no sample
) WITH (fillfactor = 10);        -- updated at each write: room for it within its page
INSERT INTO leader (epoch, holder, since, until, seq, kept) VALUES (0, '', '-infinity', '-infinity', 0, 0);
