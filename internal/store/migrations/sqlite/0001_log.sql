-- The log: one row an event, with what was decided and what was to be done.
-- Rows are never changed; the triggers see to it.
CREATE TABLE event (
  seq       INTEGER PRIMARY KEY,
  tenant    TEXT NOT NULL,
  at        INTEGER NOT NULL,            -- market time, nanoseconds since 1970
  kind      TEXT NOT NULL,
  key       TEXT,                        -- idempotency key; NULL for none
  event     TEXT NOT NULL,
  decisions TEXT,
  actions   TEXT
) STRICT;
CREATE INDEX event_key ON event (tenant, key) WHERE key IS NOT NULL;

-- One row moves money from one account to another, so every sum is zero.
CREATE TABLE posting (
  event    INTEGER NOT NULL REFERENCES event (seq),
  line     INTEGER NOT NULL,
  tenant   TEXT NOT NULL,
  job      TEXT NOT NULL,
  currency TEXT NOT NULL,
  source   TEXT NOT NULL,
  target   TEXT NOT NULL CHECK (target <> source),
  micros   INTEGER NOT NULL CHECK (micros >= 0), -- whole 1e-6 units
  picos    INTEGER NOT NULL CHECK (picos >= 0 AND picos < 1000000 AND micros + picos > 0),
  posting  TEXT NOT NULL,                        -- all of it, with its hashes
  PRIMARY KEY (event, line)
) STRICT;
CREATE INDEX posting_job ON posting (tenant, job, event, line);

CREATE TRIGGER event_stays BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER event_kept BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER posting_stays BEFORE UPDATE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never changed'); END;
CREATE TRIGGER posting_kept BEFORE DELETE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never deleted'); END;

CREATE TABLE snapshot (
  seq     INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  state   TEXT NOT NULL
) STRICT;

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
