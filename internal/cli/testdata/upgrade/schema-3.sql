-- The database of a data folder that the release of commit 02187c50 wrote: this file is never changed. It was made with
--   scrimp teams set vision
--   scrimp users set zoe --grant vision=submitter && scrimp tokens new zoe
--   scrimp run first.yaml                  (by the owner: name: first, team: vision, command: 'echo "step 1"')
--   scrimp run second.yaml                 (by zoe)
--   scrimp server stop --now
--   python3 -c 'import sqlite3; print("\n".join(sqlite3.connect("scrimp.db").iterdump()))'
BEGIN TRANSACTION;
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
INSERT INTO "event" VALUES(1,0,'default',1795823179838567578,'incarnation_begun','',',"actor":"server","body":{"installation":"809158e2","incarnation":1}}','["incarnation_set",{}]');
INSERT INTO "event" VALUES(2,0,'default',1795823179838572836,'configured','',',"actor":"server","body":{"config":{"max_running":4,"detect_ns":600000000,"boot_limit_ns":300000000000,"cool_off_ns":2000000000,"patience_ns":30000000000,"currency":"USD","providers":{"local":{"detect_ns":600000000,"boot_limit_ns":300000000000}},"speed":1,"archive_after_ns":86400000000000,"archive_unbilled_ns":604800000000000,"reserve":1}}}','["config_set",{}]');
INSERT INTO "event" VALUES(3,0,'default',1795823179842416286,'market_seen','',',"actor":"provider:local","body":{"offers":[{"id":"local/zone-a/this/spot","provider":"local","region":"local","zone":"zone-a","machine":"this","capacity":"spot","cpus":2,"memory_bytes":25276510208,"speed":1,"notice_ns":120000000000,"currency":"USD","billing":{"minimum_ns":60000000000}},{"id":"local/zone-a/this/on-demand","provider":"local","region":"local","zone":"zone-a","machine":"this","capacity":"on-demand","cpus":2,"memory_bytes":25276510208,"speed":1,"currency":"USD","billing":{"minimum_ns":60000000000}},{"id":"local/zone-b/this/spot","provider":"local","region":"local","zone":"zone-b","machine":"this","capacity":"spot","cpus":2,"memory_bytes":25276510208,"speed":1,"notice_ns":120000000000,"currency":"USD","billing":{"minimum_ns":60000000000}},{"id":"local/zone-b/this/on-demand","provider":"local","region":"local","zone":"zone-b","machine":"this","capacity":"on-demand","cpus":2,"memory_bytes":25276510208,"speed":1,"currency":"USD","billing":{"minimum_ns":60000000000}}],"seen":[{"at":"2026-11-27T23:46:19.781728119Z","source":"trace calm","quotes":[["local/zone-a/this/spot","0.033922010526","pa"],["local/zone-a/this/on-demand","0.1","pa"],["local/zone-b/this/spot","0.030342803925","pa"],["local/zone-b/this/on-demand","0.1","pa"]]}]}}','');
INSERT INTO "event" VALUES(4,0,'default',1795823180610498330,'identity_changed','',',"actor":"user","body":{"change":{"team":{"name":"vision"}}}}','');
INSERT INTO "event" VALUES(5,0,'default',1795823180610499141,'audited','',',"actor":"user","body":{"act":{"at":"2026-11-27T23:46:20.610499091Z","who":"owner","from":"socket","route":"PUT /v1/teams/{id}","object":"vision","outcome":"done"}}}','');
INSERT INTO "event" VALUES(6,0,'default',1795823180641037232,'audited','',',"actor":"user","body":{"act":{"at":"2026-11-27T23:46:20.641037172Z","who":"owner","from":"socket","route":"POST /v1/tokens","outcome":"refused","detail":"user \"zoe\" is not known"}}}','');
INSERT INTO "event" VALUES(7,0,'default',1795823180698982572,'job_submitted','e58e1972317fa27ff87e79d1',',"actor":"user","body":{"job":"first","terms":{"name":"first","owner":{"tenant":"default","team":"vision"},"priority":1,"nodes":1,"need":{},"promise":0.99,"currency":"USD","restart_ns":3000000000,"grace_ns":20000000000,"max_retries":10},"spec":{"name":"first","command":"for i in 1 2 3; do echo \"step $i\"; done","team":"vision"}}}','["job_queued",{"job":"first"},"decided",{"job":"first","version":"horizon/1","decision":{"take":"local/zone-b/this/spot","rate":"0.030342803925","why":"cheapest","mode":"patient","speed":1,"rejected":[{"offer":"local/zone-a/this/spot","rate":"0.033922010526","priced":true,"why":"costs_more"},{"offer":"local/zone-a/this/on-demand","rate":"0.1","priced":true,"why":"costs_more"},{"offer":"local/zone-b/this/on-demand","rate":"0.1","priced":true,"why":"costs_more"}]}},"allocation_requested",{"job":"first","why":"cheapest","nodes":1,"machine":{"offer":"local/zone-b/this/spot","provider":"local","region":"local","zone":"zone-b","type":"this","capacity":"spot","speed":1,"currency":"USD"},"rate":"0.030342803925","most":"0.037928504906"}]');
INSERT INTO "event" VALUES(8,0,'default',1795823182394570171,'audited','',',"actor":"user","body":{"act":{"at":"2026-11-27T23:46:22.39456962Z","who":"owner","from":"socket","route":"POST /v1/jobs","object":"first","outcome":"done","detail":"asks for 4ce3d45dc48e9cec"}}}','');
INSERT INTO "event" VALUES(9,0,'default',1795823182403668423,'launch_done','',',"actor":"provider:local","cause":"first.1","body":{"launch":"first.1","instance":"i-b8214c-1","offer":"local/zone-b/this/spot","rate":"0.030342803925","from":"2026-11-27T23:46:22.396092497Z"}}','["allocation_granted",{"allocation":"first.1","instance":"i-b8214c-1"},"attempt_began",{"attempt":"first.1"}]');
INSERT INTO "event" VALUES(10,0,'default',1795823182572362624,'machine_registered','',',"actor":"server","body":{"instance":"i-b8214c-1","allocation":"first.1","key":"n6JcQNwkypUek4WmsEUHcSaBbuR4DpTq9UyBPM4ifHQ=","version":"0.1.0-dev","wire":3,"boot":"2026-11-27T23:46:22.568007284Z","address":"127.1.209.246","cpus":2,"memory":25276510208,"root":true}}','["instance_registered",{"instance":"i-b8214c-1"}]');
INSERT INTO "event" VALUES(11,0,'default',1795823182575500130,'agent_claimed','',',"actor":"server","body":{"attempt":"first.1","by":"db54520fa54a5e2dc021b09eed474f72216844f18d017344962276fa49685d67"}}','["task_claimed",{"attempt":"first.1"}]');
INSERT INTO "event" VALUES(12,0,'default',1795823184258079673,'attempt_started','first.1/1',',"actor":"agent:first.1","body":{"attempt":"first.1","message":1,"step":0,"took_ns":731}}','["task_started",{"attempt":"first.1","work_ns":0},"time_settled",{"attempt":"first.1","until":"2026-11-27T23:46:24.258079673Z"}]');
INSERT INTO "event" VALUES(13,0,'default',1795823184478370835,'attempt_ended','first.1/2',',"actor":"agent:first.1","body":{"attempt":"first.1","message":2,"reason":"completed","exit":0,"step":0,"saved":false,"keeping_ns":219755272}}','["time_settled",{"attempt":"first.1","until":"2026-11-27T23:46:24.258615563Z"},"time_settled",{"attempt":"first.1","until":"2026-11-27T23:46:24.478370835Z"},"task_ended",{"attempt":"first.1"},"instance_released",{"instance":"i-b8214c-1","why":"program_completed"},"job_over",{"job":"first","state":"succeeded","why":"completed"}]');
INSERT INTO "event" VALUES(14,0,'default',1795823184797211939,'instance_ended','',',"actor":"provider:local","body":{"instance":"i-b8214c-1","until":"2026-11-27T23:46:24.492398448Z","cause":"terminated","launch":"first.1"}}','["time_settled",{"attempt":"first.1","until":"2026-11-27T23:46:24.492398448Z"},"instance_closed",{"instance":"i-b8214c-1","until":"2026-11-27T23:46:24.492398448Z","cause":"terminated"},"job_priced",{"job":"first","on_demand":"0.001666666666","offer":"local/zone-a/this/on-demand"}]');
INSERT INTO "event" VALUES(15,0,'default',1795823184797223957,'bill_received','',',"actor":"provider:local","body":{"instance":"i-b8214c-1","launch":"first.1","lines":[{"amount":"0.000017668833","currency":"USD","from":"2026-11-27T23:46:22.396092497Z","to":"2026-11-27T23:46:24.492398448Z"},{"rule":"minimum","amount":"0.000488044565","currency":"USD","from":"2026-11-27T23:46:24.492398448Z","to":"2026-11-27T23:47:22.396092497Z"}]}}','["bill_taken",{"instance":"i-b8214c-1"}]');
INSERT INTO "event" VALUES(16,0,'default',1795823191128873380,'identity_changed','',',"actor":"user","body":{"change":{"user":{"name":"zoe","grants":[{"team":"vision","role":"submitter"}],"made":"2026-11-27T23:46:31.12885999Z"}}}}','');
INSERT INTO "event" VALUES(17,0,'default',1795823191128874212,'audited','',',"actor":"user","body":{"act":{"at":"2026-11-27T23:46:31.128874152Z","who":"owner","from":"socket","route":"PUT /v1/users/{id}","object":"zoe","outcome":"done"}}}','');
INSERT INTO "event" VALUES(18,0,'default',1795823191152219239,'identity_changed','',',"actor":"user","body":{"change":{"token":{"id":"bf0811783b3a","user":"zoe","hash":"bf0811783b3abd7ee939766449cad822dcd7b6ff3ff64497faed2db6fe9e9e08","most":"none","made":"2026-11-27T23:46:31.152209844Z","expires":"2027-02-25T23:46:31.152209844Z"}}}}','');
INSERT INTO "event" VALUES(19,0,'default',1795823191152220180,'audited','',',"actor":"user","body":{"act":{"at":"2026-11-27T23:46:31.15222014Z","who":"owner","from":"socket","route":"POST /v1/tokens","object":"bf0811783b3a of zoe","outcome":"done"}}}','');
INSERT INTO "event" VALUES(20,0,'default',1795823212821073743,'audited','',',"actor":"user:zoe","body":{"act":{"at":"2026-11-27T23:46:52.821073062Z","who":"zoe","token":"bf0811783b3a","from":"127.0.0.1","route":"POST /v1/work","object":"41a62d1a7637ba3a56e6d6ee5eb07014","outcome":"done"}}}','');
INSERT INTO "event" VALUES(21,0,'default',1795823213118214875,'job_submitted','zoe/3ed48bdafd3593ca5b0b0d28',',"actor":"user:zoe","body":{"job":"second","terms":{"name":"second","owner":{"tenant":"default","team":"vision"},"priority":1,"nodes":1,"need":{},"promise":0.99,"currency":"USD","restart_ns":3000000000,"grace_ns":20000000000,"max_retries":10},"spec":{"name":"second","command":"for i in 1 2 3; do echo \"step $i\"; done","team":"vision"}}}','["job_queued",{"job":"second"},"decided",{"job":"second","version":"horizon/1","decision":{"take":"local/zone-b/this/spot","rate":"0.030342803925","why":"cheapest","mode":"patient","speed":1,"rejected":[{"offer":"local/zone-a/this/spot","rate":"0.033922010526","priced":true,"why":"costs_more"},{"offer":"local/zone-a/this/on-demand","rate":"0.1","priced":true,"why":"costs_more"},{"offer":"local/zone-b/this/on-demand","rate":"0.1","priced":true,"why":"costs_more"}]}},"allocation_requested",{"job":"second","why":"cheapest","nodes":1,"machine":{"offer":"local/zone-b/this/spot","provider":"local","region":"local","zone":"zone-b","type":"this","capacity":"spot","speed":1,"currency":"USD"},"rate":"0.030342803925","most":"0.037928504906"}]');
INSERT INTO "event" VALUES(22,0,'default',1795823213172532581,'audited','',',"actor":"user:zoe","body":{"act":{"at":"2026-11-27T23:46:53.17253192Z","who":"zoe","token":"bf0811783b3a","from":"127.0.0.1","route":"POST /v1/jobs","object":"second","outcome":"done","detail":"asks for 18d256c8cd6fd010"}}}','');
INSERT INTO "event" VALUES(23,0,'default',1795823213206107824,'launch_done','',',"actor":"provider:local","cause":"second.1","body":{"launch":"second.1","instance":"i-b8214c-2","offer":"local/zone-b/this/spot","rate":"0.030342803925","from":"2026-11-27T23:46:53.199500304Z"}}','["allocation_granted",{"allocation":"second.1","instance":"i-b8214c-2"},"attempt_began",{"attempt":"second.1"}]');
INSERT INTO "event" VALUES(24,0,'default',1795823213525757595,'machine_registered','',',"actor":"server","body":{"instance":"i-b8214c-2","allocation":"second.1","key":"QvrUFjKQ7bxB+3FDr8R7BX3q6nUh4LhY+jPnh7kD4RQ=","version":"0.1.0-dev","wire":3,"boot":"2026-11-27T23:46:53.52346815Z","address":"127.228.111.72","cpus":2,"memory":25276510208,"root":true}}','["instance_registered",{"instance":"i-b8214c-2"}]');
INSERT INTO "event" VALUES(25,0,'default',1795823213550557975,'agent_claimed','',',"actor":"server","body":{"attempt":"second.1","by":"2dec7c7bb1e2ad43e1003dc68144b7d34827cc9e7fab023674dc07e5e821bcf1"}}','["task_claimed",{"attempt":"second.1"}]');
INSERT INTO "event" VALUES(26,0,'default',1795823223703812029,'attempt_started','second.1/1',',"actor":"agent:second.1","body":{"attempt":"second.1","message":1,"step":0,"took_ns":511}}','["task_started",{"attempt":"second.1","work_ns":0},"time_settled",{"attempt":"second.1","until":"2026-11-27T23:47:03.703812029Z"}]');
INSERT INTO "event" VALUES(27,0,'default',1795823224010705689,'attempt_ended','second.1/2',',"actor":"agent:second.1","body":{"attempt":"second.1","message":2,"reason":"completed","exit":0,"step":0,"saved":false,"keeping_ns":306108899}}','["time_settled",{"attempt":"second.1","until":"2026-11-27T23:47:03.70459679Z"},"time_settled",{"attempt":"second.1","until":"2026-11-27T23:47:04.010705689Z"},"task_ended",{"attempt":"second.1"},"instance_released",{"instance":"i-b8214c-2","why":"program_completed"},"job_over",{"job":"second","state":"succeeded","why":"completed"}]');
INSERT INTO "event" VALUES(28,0,'default',1795823232918882869,'instance_ended','',',"actor":"provider:local","body":{"instance":"i-b8214c-2","until":"2026-11-27T23:47:04.013981343Z","cause":"terminated","launch":"second.1"}}','["time_settled",{"attempt":"second.1","until":"2026-11-27T23:47:04.013981343Z"},"instance_closed",{"instance":"i-b8214c-2","until":"2026-11-27T23:47:04.013981343Z","cause":"terminated"},"job_priced",{"job":"second","on_demand":"0.001666666666","offer":"local/zone-a/this/on-demand"}]');
INSERT INTO "event" VALUES(29,0,'default',1795823232918888948,'bill_received','',',"actor":"provider:local","body":{"instance":"i-b8214c-2","launch":"second.1","lines":[{"amount":"0.000091150466","currency":"USD","from":"2026-11-27T23:46:53.199500304Z","to":"2026-11-27T23:47:04.013981343Z"},{"rule":"minimum","amount":"0.000414562932","currency":"USD","from":"2026-11-27T23:47:04.013981343Z","to":"2026-11-27T23:47:53.199500304Z"}]}}','["bill_taken",{"instance":"i-b8214c-2"}]');
INSERT INTO "event" VALUES(30,0,'default',1795823233101885387,'audited','',',"actor":"user","body":{"act":{"at":"2026-11-27T23:47:13.101885267Z","who":"owner","from":"socket","route":"POST /v1/server/stop","outcome":"done"}}}','');
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
INSERT INTO "meta" VALUES('place','file/10019196/1795823179.719917201');
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
INSERT INTO "posting" VALUES(12,0,'default','first','USD','payable/local','cost/compute/start-up',15,693864,X'40207F35F640BF0EE70061F700696475067237F0A7D4947609EA1189E6B4DA2D',X'023FF2EEE891FCEA85EC31CFADDDEF0DD0ADDDEF0D02D08587B606AAC79389E20180A0B787E90501080D0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3105422E3107422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(13,0,'default','first','USD','payable/local','cost/compute/useful',0,4517,X'00A794448C85BDD939FD3DEB7B51BAF8FE040EF2237E31C2F7DCD2DD6E4B705A',X'023FA6F0F3E3FDEA85EC31B3818BD201A4B54100A4B541AAC79389E20180A0B787E90501080B0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3105422E3107422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(13,1,'default','first','USD','payable/local','cost/compute/idle',1,852219,X'EA367250EAC1014E03D24518AC9D6EC8647799F68B5741162D5ABDD88E49E4E3',X'023FA6F0F3E3FDEA85EC318FCCC9D10190CCC9D1010090CCC9D101AAC79389E20180A0B787E90501080E0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3105422E3107422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(14,0,'default','first','USD','payable/local','cost/compute/idle',0,118233,X'09BC32272C1A74A30E8E10DA7827A433AFB726ED8D0D8F3C597EB75CBA47F90F',X'023FC6F4FC9380EB85EC319F8489B002BAADB00D00BAADB00DAAC79389E20180A0B787E90501080E0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3105422E3107422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(15,0,'default','first','USD','payable/local','cost/compute/idle',488,44565,X'3825F9D75E516FED07EA626117E9B964D5E87225AE73C4F2D7F07DF687E654CF',X'0207AAB0FE9380EB85EC31C992DAA202C283A2B5AF0301090E00476D696E696D756D456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3105422E3107422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(15,1,'default','first','USD','invoice/local','payable/local',505,713398,X'1BD2B560802909968F6C2B4DDE563E8E8E566143D80E94DCDA992A2B24E6C186',X'0201AAB0FE9380EB85EC3101090A0000456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3105422E3107422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(26,0,'default','second','USD','payable/local','cost/compute/start-up',88,536186,X'A0E32DD89194C8F97FD0313DF4D6D01F521E2A6A2C92C6720EA45BA340887B87',X'023FFADE9984A2ED85EC31D9CED8A14EDACED8A14E14DABEF9E003AAC79389E20180A0B787E90501080D0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3206422E3108422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(27,0,'default','second','USD','payable/local','cost/compute/useful',0,6614,X'FC062114C560A2DA4934F4AC30CBA60537D064EF66FBA6B81493630309A77C2A',X'023FB2ACF0A8A4ED85EC31B7CDD6A402F2E55F00F2E55FAAC79389E20180A0B787E90501080B0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3206422E3108422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(27,1,'default','second','USD','payable/local','cost/compute/idle',2,580056,X'6E00C16A2DA72F6F6DDC26279D8DCA20D7671D06C2C87F33D66C97491782223A',X'023FB2ACF0A8A4ED85EC31C5E7F6A302C6E7F6A30200C6E7F6A302AAC79389E20180A0B787E90501080E0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3206422E3108422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(28,0,'default','second','USD','payable/local','cost/compute/idle',0,27610,X'13C341D9B58DEBBF46AEDA85C5DA995C034F2EE0DF89A98EB18BE3DF2F63B930',X'023FEAA8B0D8E6ED85EC31B7FCBFAF428CEE8F03008CEE8F03AAC79389E20180A0B787E90501080E0F00456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3206422E3108422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(29,0,'default','second','USD','payable/local','cost/compute/idle',414,562932,X'063C0606F3F98AE401C43D58967DB5702C90984DC2B477DD8F0690378D06AB64',X'0207E887B1D8E6ED85EC31A9EDB0AC42E2D5FBBAEE0201090E00476D696E696D756D456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3206422E3108422F30467A6F6E652D62');
INSERT INTO "posting" VALUES(29,1,'default','second','USD','invoice/local','payable/local',505,713398,X'C4EB9E481665C0F2EDD0B6FBDD21EE254B0B4BFB6B7CCAFEBF33E6EA6237A67C',X'0201E887B1D8E6ED85EC3101090A0000456C6F63616C456C6F63616C447468697346766973696F6E0000004A692D6238323134632D3206422E3108422F30467A6F6E652D62');
CREATE TABLE sample (
  seq    INTEGER PRIMARY KEY,
  gap    INTEGER NOT NULL CHECK (gap >= 0), -- samples between it and the event before it
  tenant TEXT NOT NULL,
  at     INTEGER NOT NULL,
  kind   TEXT NOT NULL,
  key    TEXT NOT NULL,
  event  TEXT NOT NULL
) STRICT;
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, at TEXT NOT NULL) STRICT;
INSERT INTO "schema_version" VALUES(3,'2026-11-27 23:46:19');
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
CREATE INDEX event_key ON event (tenant, key) WHERE key <> '';
CREATE INDEX event_kind ON event (kind);
CREATE INDEX sample_key ON sample (tenant, key) WHERE key <> '';
CREATE INDEX sample_kind ON sample (kind);
CREATE INDEX posting_job ON posting (tenant, job);
CREATE TRIGGER event_stays BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER event_kept BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER sample_stays BEFORE UPDATE ON sample BEGIN SELECT RAISE(ABORT, 'samples are never changed'); END;
CREATE TRIGGER posting_stays BEFORE UPDATE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never changed'); END;
CREATE TRIGGER posting_kept BEFORE DELETE ON posting BEGIN SELECT RAISE(ABORT, 'postings are never deleted'); END;
COMMIT;
