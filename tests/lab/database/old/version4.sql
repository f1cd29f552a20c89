BEGIN TRANSACTION;
CREATE TABLE active_models (name TEXT PRIMARY KEY, version INTEGER NOT NULL, history TEXT NOT NULL);
CREATE TABLE answers (number INTEGER PRIMARY KEY AUTOINCREMENT, project TEXT NOT NULL REFERENCES projects (id), judge TEXT NOT NULL,
    client_id TEXT NOT NULL, item TEXT NOT NULL, action TEXT NOT NULL, entry TEXT NOT NULL, time TEXT NOT NULL, version TEXT NOT NULL DEFAULT '',
    UNIQUE (project, judge, client_id));
INSERT INTO "answers" VALUES(1,'p','ann','c1','a|b','left','{"action": "left"}','2026-01-31T12:00:01.000+00:00','0.2');
CREATE TABLE api_keys (id TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, hash TEXT NOT NULL,
    created TEXT NOT NULL, is_revoked INTEGER NOT NULL);
INSERT INTO "api_keys" VALUES('k1','shop','rank,feedback','2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b','2026-01-31T12:00:00+00:00',0);
CREATE TABLE event_arrays (number INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE events (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, id TEXT NOT NULL, time BIGINT NOT NULL, person TEXT NOT NULL,
    subject TEXT NOT NULL, item TEXT NOT NULL, flag BIGINT NOT NULL, body TEXT NOT NULL, UNIQUE (kind, id));
INSERT INTO "events" VALUES(1,'impression','l1',1767225600000,'ann','','',0,'{"query": "tea", "items": ["a", "b"]}');
INSERT INTO "events" VALUES(2,'user','u1',1767225600001,'ann','','',0,'{"event": "user"}');
INSERT INTO "events" VALUES(3,'feedback','c1',1767225600002,'ann','l1','b',1,'{"action": "click"}');
CREATE TABLE files (project TEXT NOT NULL REFERENCES projects (id), name TEXT NOT NULL, type TEXT NOT NULL,
    content BLOB NOT NULL, PRIMARY KEY (project, name));
CREATE TABLE holds (project TEXT NOT NULL, item TEXT NOT NULL, judge TEXT NOT NULL, until REAL NOT NULL,
    PRIMARY KEY (project, item, judge));
CREATE TABLE import_files (import TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, content BLOB NOT NULL, PRIMARY KEY (import, number));
CREATE TABLE imports (id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, created TEXT NOT NULL, stage TEXT NOT NULL, share REAL NOT NULL, attempts INTEGER NOT NULL, project TEXT REFERENCES projects (id), error TEXT NOT NULL);
CREATE TABLE items (id TEXT PRIMARY KEY, body TEXT NOT NULL);
INSERT INTO "items" VALUES('a','{"features": [1, 2]}');
CREATE TABLE judges (id TEXT PRIMARY KEY, project TEXT REFERENCES projects (id), name TEXT NOT NULL,
    token_hash TEXT NOT NULL, created TEXT NOT NULL, is_revoked INTEGER NOT NULL, is_opened INTEGER NOT NULL DEFAULT 0, UNIQUE (project, name));
CREATE TABLE learner (id INTEGER PRIMARY KEY, number BIGINT NOT NULL, oldest BIGINT NOT NULL, counts TEXT NOT NULL);
INSERT INTO "learner" VALUES(1,0,1,'{}');
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('database','0123456789abcdef');
INSERT INTO "meta" VALUES('version','4');
CREATE TABLE models (name TEXT NOT NULL, version INTEGER NOT NULL, kind TEXT NOT NULL, recipe TEXT NOT NULL,
    initial BLOB NOT NULL, state BLOB NOT NULL, counts TEXT NOT NULL, learnt BIGINT NOT NULL,
    created TEXT NOT NULL, PRIMARY KEY (name, version));
CREATE TABLE projects (id TEXT PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, settings TEXT NOT NULL,
    created TEXT NOT NULL, is_archived INTEGER NOT NULL);
INSERT INTO "projects" VALUES('p','compare','teas','{}','2026-01-31T12:00:00.000+00:00',0);
CREATE INDEX answers_in_order ON answers (project, number);
COMMIT;
