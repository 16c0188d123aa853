-- The log: one row an event, with the facts that follow from it. Rows are never
-- changed or deleted; the triggers see to it.
CREATE TABLE event (
  seq    INTEGER PRIMARY KEY,
  gap    INTEGER NOT NULL CHECK (gap >= 0), -- samples between it and the event before it
  tenant TEXT NOT NULL,
  at     INTEGER NOT NULL,                  -- market time, nanoseconds since 1970
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,                     -- idempotency key; '' for none
  event  TEXT NOT NULL,
  facts  TEXT NOT NULL                      -- a JSON list; '' for none
) STRICT;
CREATE INDEX event_key ON event (tenant, key) WHERE key <> '';
CREATE INDEX event_kind ON event (kind); -- and by seq within a kind, since that is the row's number

-- Samples share the numbers of the log. They are never changed, and deleted when
-- no snapshot needs them.
CREATE TABLE sample (
  seq    INTEGER PRIMARY KEY,
  gap    INTEGER NOT NULL CHECK (gap >= 0), -- samples between it and the event before it
  tenant TEXT NOT NULL,
  at     INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  event  TEXT NOT NULL
) STRICT;
CREATE INDEX sample_key ON sample (tenant, key) WHERE key <> '';
CREATE INDEX sample_kind ON sample (kind);

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
  hash     BLOB NOT NULL,                        -- covers all of it, and the hash of the tenant's posting before it
  rest     BLOB NOT NULL,                        -- what is no column
  PRIMARY KEY (event, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX posting_job ON posting (tenant, job); -- and by event and line within a job, since those are the row's key

CREATE TRIGGER event_stays BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER event_kept BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER sample_stays BEFORE UPDATE ON sample BEGIN SELECT RAISE(ABORT, 'samples are never changed'); END;
CREATE TRIGGER posting_stays BEFORE UPDATE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never changed'); END;
CREATE TRIGGER posting_kept BEFORE DELETE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never deleted'); END;

-- A snapshot is written in parts, and is there once its row here is, which comes
-- last: one write of a large one would keep appends waiting.
CREATE TABLE snapshot (
  seq     INTEGER PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT;
CREATE TABLE snapshot_part (
  seq   INTEGER NOT NULL,
  part  INTEGER NOT NULL,  -- counts from 0
  bytes BLOB NOT NULL,
  PRIMARY KEY (seq, part)
) STRICT, WITHOUT ROWID;

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
