-- A snapshot of a million jobs is larger than a value may be, and one write of
-- it would keep appends waiting. It is written in parts, and is there once its
-- row in snapshot is, which comes last.
CREATE TABLE snapshot_part (
  seq   INTEGER NOT NULL,
  part  INTEGER NOT NULL,  -- counts from 0
  bytes BLOB NOT NULL,
  PRIMARY KEY (seq, part)
) STRICT, WITHOUT ROWID;
INSERT INTO snapshot_part (seq, part, bytes) SELECT seq, 0, CAST(state AS BLOB) FROM snapshot;
ALTER TABLE snapshot DROP COLUMN state;

-- One kind of event can be read without all that lies between.
CREATE INDEX event_kind ON event (kind, seq);
