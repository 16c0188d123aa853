-- A database of schema 1 as the release that had it wrote it: this file is never changed.
BEGIN TRANSACTION;
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
INSERT INTO "event" VALUES(1,'lab',1767323046678901234,'tick',NULL,'{"at": "x",  "seq":1,"text":"né\u0000\"<&>","job":"j-1"}',NULL,NULL);
INSERT INTO "event" VALUES(2,'default',1767323047678901234,'job_submitted',NULL,'{"at": "x",  "seq":2,"text":"né\u0000\"<&>","job":"j-2"}',NULL,NULL);
INSERT INTO "event" VALUES(3,'default',1767323048678901234,'tick',NULL,'{"at": "x",  "seq":3,"text":"né\u0000\"<&>","job":"j-3"}','[{"taken":3}]',NULL);
INSERT INTO "event" VALUES(4,'lab',1767323049678901234,'job_submitted','key-4','{"at": "x",  "seq":4,"text":"né\u0000\"<&>","job":"j-4"}',NULL,NULL);
INSERT INTO "event" VALUES(5,'default',1767323050678901234,'tick',NULL,'{"at": "x",  "seq":5,"text":"né\u0000\"<&>","job":"j-0"}',NULL,'[{"launch":5}]');
INSERT INTO "event" VALUES(6,'default',1767323051678901234,'job_submitted',NULL,'{"at": "x",  "seq":6,"text":"né\u0000\"<&>","job":"j-1"}','[{"taken":6}]',NULL);
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
INSERT INTO "meta" VALUES('fact','kept');
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
INSERT INTO "posting" VALUES(1,0,'lab','j-1','USD','payable/local','cost/compute/open',1,4,'{"event":1,"line":0,"at":"2026-01-02T03:04:06.678901234Z","amount":"0.000001000004","currency":"USD","from":"payable/local","to":"cost/compute/open","category":"compute","phase":"accrued","use":"open","owner":{"tenant":"lab","team":"t","job":"j-1","attempt":"j-1-1","tags":{"a":"1","b":"2"}},"prev":"0000000000000000000000000000000000000000000000000000000000000000","hash":"c4e3b13a777e75d9772a0a31b99586c8ae7828ed11a96d3106728f1ba9c974c1"}');
INSERT INTO "posting" VALUES(2,0,'default','j-2','USD','payable/local','cost/compute/open',2,7,'{"event":2,"line":0,"at":"2026-01-02T03:04:07.678901234Z","amount":"0.000002000007","currency":"USD","from":"payable/local","to":"cost/compute/open","category":"compute","phase":"accrued","use":"open","owner":{"tenant":"default","team":"t","job":"j-2","attempt":"j-2-1","tags":{"a":"1","b":"2"}},"prev":"0000000000000000000000000000000000000000000000000000000000000000","hash":"919784df3e516f1c8dada2351a72ade0f6cce6118c4944f73e202c90617ab0c6"}');
INSERT INTO "posting" VALUES(2,1,'default','j-2','USD','payable/local','cost/compute/open',2,8,'{"event":2,"line":1,"at":"2026-01-02T03:04:07.678901234Z","amount":"0.000002000008","currency":"USD","from":"payable/local","to":"cost/compute/open","category":"compute","phase":"accrued","use":"open","owner":{"tenant":"default","team":"t","job":"j-2","attempt":"j-2-1","tags":{"a":"1","b":"2"}},"prev":"919784df3e516f1c8dada2351a72ade0f6cce6118c4944f73e202c90617ab0c6","hash":"6a33a0f9d7ded12254163bae39df41aa8a5dfadfd426002892e8b19fbd704f4d"}');
INSERT INTO "posting" VALUES(4,0,'lab','j-4','USD','payable/local','cost/compute/open',4,13,'{"event":4,"line":0,"at":"2026-01-02T03:04:09.678901234Z","amount":"0.000004000013","currency":"USD","from":"payable/local","to":"cost/compute/open","category":"compute","phase":"accrued","use":"open","owner":{"tenant":"lab","team":"t","job":"j-4","attempt":"j-4-1","tags":{"a":"1","b":"2"}},"prev":"c4e3b13a777e75d9772a0a31b99586c8ae7828ed11a96d3106728f1ba9c974c1","hash":"fce13c69b3499cc6edc2e073cfa2b9a795afeb90738f13794821f26fd25d6b36"}');
INSERT INTO "posting" VALUES(5,0,'default','j-0','USD','payable/local','cost/compute/open',5,16,'{"event":5,"line":0,"at":"2026-01-02T03:04:10.678901234Z","amount":"0.000005000016","currency":"USD","from":"payable/local","to":"cost/compute/open","category":"compute","phase":"accrued","use":"open","owner":{"tenant":"default","team":"t","job":"j-0","attempt":"j-0-1","tags":{"a":"1","b":"2"}},"prev":"6a33a0f9d7ded12254163bae39df41aa8a5dfadfd426002892e8b19fbd704f4d","hash":"b63c51ff58e30efa7c76fdf0b2c09d6a40b2b72e1b03a53aaab77c97ff1bd39c"}');
INSERT INTO "posting" VALUES(5,1,'default','j-0','USD','payable/local','cost/compute/open',5,17,'{"event":5,"line":1,"at":"2026-01-02T03:04:10.678901234Z","amount":"0.000005000017","currency":"USD","from":"payable/local","to":"cost/compute/open","category":"compute","phase":"accrued","use":"open","owner":{"tenant":"default","team":"t","job":"j-0","attempt":"j-0-1","tags":{"a":"1","b":"2"}},"prev":"b63c51ff58e30efa7c76fdf0b2c09d6a40b2b72e1b03a53aaab77c97ff1bd39c","hash":"5ac611572c9c1fc168b87f8f5e872f4b9a3e401062bac1d53e73224a02083e55"}');
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, at TEXT NOT NULL) STRICT;
INSERT INTO "schema_version" VALUES(1,'2026-11-21 07:26:48');
CREATE TABLE snapshot (
  seq     INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  state   TEXT NOT NULL
) STRICT;
INSERT INTO "snapshot" VALUES(6,1,'{"state": "né"}');
CREATE INDEX event_key ON event (tenant, key) WHERE key IS NOT NULL;
CREATE INDEX posting_job ON posting (tenant, job, event, line);
CREATE TRIGGER event_stays BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER event_kept BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER posting_stays BEFORE UPDATE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never changed'); END;
CREATE TRIGGER posting_kept BEFORE DELETE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never deleted'); END;
COMMIT;
