//go:build !local

package store_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"scrimp/internal/lib/wait"
	"scrimp/internal/store"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/migrations"
	"scrimp/internal/store/postgres"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/storetest"
	"scrimp/internal/test/storetest/suite"
)

// A PostgreSQL place is the data folder, a space, and the address.
func placeOf(t testing.TB, address string) string { return t.TempDir() + " " + address }

func settings(place string) postgres.Config {
	dir, address, _ := strings.Cut(place, " ")
	cfg := postgres.Default(address, dir)
	cfg.Lease = 2 * time.Second // the tests wait for it after each kill -9
	return cfg
}

// lead opens a place and leads; it waits longer than a dead leader's lease.
func lead(ctx context.Context, place string) (store.Store, error) {
	cfg := settings(place)
	s, err := postgres.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	for range 12 {
		if err = s.TryLead(ctx); err == nil {
			return s, nil
		}
		if !errors.Is(err, store.ErrLocked) || wait.For(ctx, cfg.Lease/8) != nil {
			break
		}
	}
	return nil, errors.Join(err, s.Close())
}

// postgres returns the backend; without a cluster it can only open places.
func onPostgres(c *pgtest.Cluster) storetest.Backend {
	return storetest.Backend{
		Name:  "postgres",
		Place: func(t testing.TB) string { return placeOf(t, c.Database(t)) },
		Open:  lead,
		Exec: func(_ testing.TB, place, text string) error {
			_, err := c.Query(settings(place).URL, text)
			return err
		},
		Full: func(t testing.TB, bytes int64) string { return placeOf(t, c.SmallDatabase(t, bytes)) },
		Old: func(t testing.TB) string {
			place := placeOf(t, c.Database(t))
			_, err := c.Query(settings(place).URL, "CREATE TABLE schema_version (version integer PRIMARY KEY, at timestamptz NOT NULL DEFAULT now()); INSERT INTO schema_version VALUES (1)")
			must(t, err)
			return place
		},
		Size: func(t testing.TB, place string) int64 {
			out, err := c.Query(settings(place).URL, "SELECT sum(pg_total_relation_size(name)) FROM unnest(ARRAY['event', 'sample', 'posting']) AS name")
			must(t, err)
			n, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
			must(t, err)
			return n
		},
	}
}

func init() { backends = append(backends, onPostgres(nil)) }

func TestPostgres(t *testing.T) {
	lane.Component(t, "postgres")
	t.Parallel()
	c := pgtest.Start(t)
	t.Run("conforms", func(t *testing.T) {
		t.Parallel()
		suite.Run(t, onPostgres(c))
	})
	t.Run("replicas", func(t *testing.T) {
		t.Parallel()
		replicas(t, c)
	})
}

// A server with a full disk fails for its other databases, too, so it gets its own cluster.
func TestPostgresOnAFullDisk(t *testing.T) {
	lane.Component(t, "postgres")
	t.Parallel()
	suite.FullDisk(t, onPostgres(pgtest.Start(t)))
}

// TestPostgresAtLength runs more records and rounds than the component lane has time for.
func TestPostgresAtLength(t *testing.T) {
	lane.Nightly(t, "a hundred thousand records, and leaders that are killed in a loop")
	c := pgtest.Start(t)
	t.Run("conforms", func(t *testing.T) { suite.Run(t, onPostgres(c)) })
	t.Run("leaders", func(t *testing.T) { killedLeaders(t, c) })
}

// replicas tests the requirements on a store that several servers open.
func replicas(t *testing.T, c *pgtest.Cluster) {
	for _, p := range []struct {
		name string
		test func(*testing.T, *pgtest.Cluster)
	}{
		{"a deposed leader's writes are refused", deposed},
		{"a write and a takeover happen one after the other", oneAfterTheOther},
		{"who is frozen within a write does not keep the lead", frozenWithin},
		{"close hands over at once", handOver},
		{"servers that start at once migrate once", migrateOnce},
		{"a lost answer is asked for", lostAnswer},
		{"a leader that is cut off knows it", cutOff},
		{"dead lines are given up", deadLines},
		{"an append that was given up and comes through is seen", lateWrite},
		{"leaders that are killed and frozen in a loop lose nothing and do nothing twice", killedLeaders},
		{"appends outlive the database's crash", crash},
		{"an append that an administrator cancels is written once", cancelled},
		{"a backup with hostile texts restores or is refused", hostileBackup},
		{"a backup of SQLite restores into PostgreSQL and back to the same hash", thereAndBack},
	} {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			p.test(t, c)
		})
	}
}

// replica opens a place without leading.
func replica(t testing.TB, cfg postgres.Config) store.Replica {
	t.Helper()
	s, err := postgres.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // closes again if the test closed it
	return s
}

func wantEnd(t testing.TB, s store.Store, want uint64) {
	t.Helper()
	if end, err := s.End(t.Context()); end != want || err != nil {
		t.Fatalf("the log ends at %d (%v), want %d", end, err, want)
	}
}

const expire = "UPDATE leader SET until = '-infinity'"

// A server frozen while it sent a write leaves a session that holds the leader's row. The next leader ends it once
// the lease has expired.
func frozenWithin(t *testing.T, c *pgtest.Cluster) {
	cfg := settings(placeOf(t, c.Database(t)))
	cfg.Lease = 200 * time.Millisecond
	next := replica(t, cfg)
	_, err := c.Query(cfg.URL, expire)
	must(t, err)
	frozen, ended := make(chan struct{}), make(chan error, 1)
	conn, err := pgx.Connect(t.Context(), cfg.URL)
	must(t, err)
	tx, err := conn.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), "UPDATE leader SET holder = 'frozen'")
	must(t, err)
	go func() {
		close(frozen)
		_, err := tx.Exec(t.Context(), "SELECT pg_sleep(3600)") // so that the session is not idle
		ended <- err
	}()
	<-frozen
	must(t, next.Lead(t.Context()))
	if err := <-ended; err == nil {
		t.Error("the session that held the lead still runs")
	}
	if next.Epoch() == 0 {
		t.Error("nobody leads")
	}
	_ = conn.Close(context.WithoutCancel(t.Context()))
}

// A replaced leader writes nothing, whatever it tries, and learns that it is deposed. The new leader continues at the
// end of the log.
func deposed(t *testing.T, c *pgtest.Cluster) {
	for name, write := range map[string]func(ctx context.Context, s store.Store, next []store.Record) error{
		"append":   func(ctx context.Context, s store.Store, next []store.Record) error { return s.Append(ctx, next) },
		"snapshot": snapshot,
		"parts of one": func(ctx context.Context, s store.Store, _ []store.Record) error {
			return s.SaveParts(ctx, 5, map[int]json.RawMessage{0: []byte("[]"), 1: []byte("[]")})
		},
		"dropping samples": func(ctx context.Context, s store.Store, _ []store.Record) error {
			_, err := s.DropSamples(ctx, 1)
			return err
		},
		"a fact": func(ctx context.Context, s store.Store, _ []store.Record) error { return s.PutMeta(ctx, "a", "old") },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := settings(placeOf(t, c.Database(t)))
			cfg.Lease = time.Hour // no renewal: only the write itself can find out
			old, next := replica(t, cfg), replica(t, cfg)
			var w storetest.Writer
			must(t, old.TryLead(t.Context()))
			must(t, old.Append(t.Context(), w.Make(5)))
			if err := next.TryLead(t.Context()); !errors.Is(err, store.ErrLocked) {
				t.Fatalf("a second leader within the lease: %v", err)
			}
			if err := next.Append(t.Context(), w.Make(1)); !errors.Is(err, store.ErrDeposed) {
				t.Fatalf("one who does not lead writes: %v", err)
			}
			if !old.Leads() || next.Leads() || old.Epoch() != 1 || next.Epoch() != 0 {
				t.Errorf("before: leads %v and %v, epochs %d and %d", old.Leads(), next.Leads(), old.Epoch(), next.Epoch())
			}
			_, err := c.Query(cfg.URL, expire)
			must(t, err)
			must(t, next.TryLead(t.Context()))

			w = storetest.Writer{}
			more := w.Make(12)[5:]
			if err := write(t.Context(), old, more[:3]); !errors.Is(err, store.ErrDeposed) {
				t.Errorf("the old leader's write: %v, want ErrDeposed", err)
			}
			select {
			case <-old.Deposed():
			default:
				t.Error("the old leader does not know that it is deposed")
			}
			if old.Leads() || !next.Leads() || next.Epoch() != 2 {
				t.Errorf("after: leads %v and %v, epoch %d", old.Leads(), next.Leads(), next.Epoch())
			}
			if err := old.TryLead(t.Context()); !errors.Is(err, store.ErrDeposed) {
				t.Errorf("the old leader leads again with its old memory: %v", err)
			}
			wantEnd(t, old, 5)
			if got, err := c.Query(cfg.URL, "SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM sample) UNION ALL SELECT count(*) FROM meta UNION ALL SELECT count(*) FROM snapshot_part"); got != "5\n0\n0" || err != nil {
				t.Errorf("events, facts and snapshot parts: %q, %v; want 5, 0, 0", got, err)
			}
			must(t, next.Append(t.Context(), more))
			wantEnd(t, old, 12) // it can still read
		})
	}
}

func snapshot(ctx context.Context, s store.Store, _ []store.Record) error {
	return s.SaveSnapshot(ctx, store.Snapshot{Seq: 5, Version: 1, State: []byte("{}")})
}

// An append whose statement an administrator cancels, or whose session an administrator ends, is still written
// exactly once, and so is one to a database with a statement timeout of a millisecond.
func cancelled(t *testing.T, c *pgtest.Cluster) {
	cfg := settings(placeOf(t, c.Database(t)))
	cfg.Lease = time.Hour
	s := replica(t, cfg)
	must(t, s.TryLead(t.Context()))
	_, err := c.Query(cfg.URL, `CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		WHILE NOT pg_try_advisory_xact_lock_shared(7) LOOP PERFORM pg_sleep(0.005); END LOOP; RETURN NEW; END $$;
		CREATE TRIGGER nap BEFORE INSERT ON event FOR EACH STATEMENT EXECUTE FUNCTION nap()`)
	must(t, err)
	var w storetest.Writer
	for _, ends := range []string{"pg_cancel_backend", "pg_terminate_backend"} {
		holder, err := pgx.Connect(t.Context(), cfg.URL)
		must(t, err)
		_, err = holder.Exec(t.Context(), "SELECT pg_advisory_lock(7)")
		must(t, err)
		written, next := make(chan error, 1), w.Make(3)
		go func() { written <- s.Append(t.Context(), next) }()
		for range 3 {
			eventually.True(t, "the append is ended by "+ends, func() bool {
				n, err := c.Query(cfg.URL, "SELECT count("+ends+"(pid)) FROM pg_stat_activity WHERE datname = current_database() AND "+
					"wait_event = 'PgSleep'")
				must(t, err)
				return n != "0"
			})
		}
		must(t, holder.Close(t.Context()))
		must(t, <-written)
	}
	must(t, s.Close())
	_, err = c.Query(cfg.URL, "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 1', current_database()); END $$")
	must(t, err)
	s = replica(t, cfg)
	must(t, s.TryLead(t.Context()))
	must(t, s.Append(t.Context(), w.Make(900)))
	wantWritten(t, s, 906)
}

// A backup of a log with text that PostgreSQL cannot store is refused, and the error names the place. Other text is
// restored byte by byte.
func hostileBackup(t *testing.T, c *pgtest.Cluster) {
	for name, take := range map[string]struct {
		text string
		ok   bool
	}{
		"SQL": {`'; DROP TABLE event; --`, true}, "quotes": {`\"\\''$1 %s`, true}, "unicode": {"ünï \u202e 名前 \u2028", true},
		"an escape": {`\u0000 \ud800`, true}, "controls": {"\x01\x1b[2J\x7f", true},
		"a zero byte": {"a\x00b", false},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := sqlite.Open(t.TempDir())
			must(t, err)
			defer func() { _ = from.Close() }()
			records := new(storetest.Writer).Make(5)
			records[3].Key = "key " + take.text
			must(t, from.Append(t.Context(), records))
			if take.ok {
				must(t, from.PutMeta(t.Context(), "fact "+take.text, take.text))
			}
			var file bytes.Buffer
			_, err = backup.Write(t.Context(), from, &file)
			must(t, err)
			pg := replica(t, settings(placeOf(t, c.Database(t))))
			must(t, pg.TryLead(t.Context()))
			_, err = backup.Restore(t.Context(), pg, &file)
			if (err == nil) != take.ok {
				t.Errorf("%v, taken: want %v", err, take.ok)
			}
			if err == nil {
				got, err := pg.WholeRecords(t.Context(), 0, 10)
				must(t, err)
				storetest.Same(t, got, records)
				if v, _, err := pg.Meta(t.Context(), "fact "+take.text); err != nil || v != take.text {
					t.Errorf("a fact is %q, %v", v, err)
				}
			}
			must(t, pg.Append(t.Context(), nil)) // the store still works
		})
	}
}

// A write that the database delays either precedes a takeover or is refused by it: the leader's row decides, not the
// clock.
func oneAfterTheOther(t *testing.T, c *pgtest.Cluster) {
	cfg := settings(placeOf(t, c.Database(t)))
	cfg.Lease = time.Hour
	old, next := replica(t, cfg), replica(t, cfg)
	must(t, old.TryLead(t.Context()))
	_, err := c.Query(cfg.URL, expire)
	must(t, err)
	// The append takes the leader's row, then sleeps within its insert as long as lock 7 is held.
	_, err = c.Query(cfg.URL, `CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		WHILE NOT pg_try_advisory_xact_lock_shared(7) LOOP PERFORM pg_sleep(0.02); END LOOP; RETURN NEW; END $$;
		CREATE TRIGGER nap BEFORE INSERT ON event FOR EACH STATEMENT EXECUTE FUNCTION nap()`)
	must(t, err)
	holder, err := pgx.Connect(t.Context(), cfg.URL)
	must(t, err)
	_, err = holder.Exec(t.Context(), "SELECT pg_advisory_lock(7)")
	must(t, err)
	defer func() { _ = holder.Close(context.Background()) }()
	counts := func(what, where string) {
		t.Helper()
		eventually.True(t, what, func() bool {
			n, err := c.Query(cfg.URL, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "+where)
			must(t, err)
			return n != "0"
		})
	}
	written, led := make(chan error, 1), make(chan error, 1)
	go func() { written <- old.Append(t.Context(), new(storetest.Writer).Make(3)) }()
	counts("the append sleeps", "wait_event = 'PgSleep'")
	go func() { led <- next.TryLead(t.Context()) }()
	counts("the takeover waits for it", "wait_event_type = 'Lock'")
	_, err = holder.Exec(t.Context(), "SELECT pg_advisory_unlock(7)")
	must(t, err)
	if err := <-led; !errors.Is(err, store.ErrLocked) {
		t.Errorf("a takeover during a write: %v, want it refused, for the write renews the lease", err)
	}
	must(t, <-written)
	wantEnd(t, next, 3)
}

// Close hands over at once, and the next leader has the whole log.
func handOver(t *testing.T, c *pgtest.Cluster) {
	cfg := settings(placeOf(t, c.Database(t)))
	cfg.Lease = time.Hour
	var w storetest.Writer
	for round := range uint64(3) {
		s := replica(t, cfg)
		must(t, s.TryLead(t.Context()))
		if s.Epoch() != round+1 {
			t.Errorf("epoch %d, want %d", s.Epoch(), round+1)
		}
		must(t, s.Append(t.Context(), w.Make(4)))
		must(t, s.Close())
	}
	wantEnd(t, replica(t, cfg), 12)
}

// Servers that start at once on an empty database create its schema once.
func migrateOnce(t *testing.T, c *pgtest.Cluster) {
	place := placeOf(t, c.Database(t))
	var all sync.WaitGroup
	var leaders atomic.Int32
	for range 8 {
		all.Go(func() {
			s := replica(t, settings(place))
			err := s.TryLead(t.Context())
			if err == nil {
				leaders.Add(1)
			} else if !errors.Is(err, store.ErrLocked) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := leaders.Load(); n != 1 {
		t.Errorf("%d servers lead", n)
	}
	if got, err := c.Query(settings(place).URL, "SELECT count(*) FROM schema_version"); got != fmt.Sprint(migrations.Schema("postgres")-2) || err != nil {
		t.Errorf("%s notes of the schema, %v", got, err)
	}
}

// A database that crashes and recovers during appends loses nothing that was acknowledged, and the writer only waits.
func crash(t *testing.T, _ *pgtest.Cluster) {
	c := pgtest.Start(t) // its own cluster, because the test kills it
	cfg := settings(placeOf(t, c.Database(t)))
	s := replica(t, cfg)
	must(t, s.TryLead(t.Context()))
	records, crashes := uint64(lane.Pick(600, 3000)), 0
	var acked atomic.Uint64
	done := make(chan error, 1)
	progress := make(chan uint64, records)
	go func() {
		defer close(progress)
		var w storetest.Writer
		for acked.Load() < records {
			list := w.Make(10)
			if err := s.Append(t.Context(), list); err != nil {
				done <- err
				return
			}
			acked.Store(w.Next - 1)
			progress <- w.Next - 1
		}
		done <- nil
	}()
	for n := range progress {
		if n > records/4*uint64(crashes+1) && crashes < 3 {
			c.Kill(t)
			c.Run(t)
			crashes++
		}
	}
	must(t, <-done)
	if crashes != 3 {
		t.Fatalf("%d crashes: the test shows nothing", crashes)
	}
	wantWritten(t, s, int(records))
}

// A team that outgrows its SQLite folder keeps its whole history, and can return.
func thereAndBack(t *testing.T, c *pgtest.Cluster) {
	from, err := sqlite.Open(t.TempDir())
	must(t, err)
	defer func() { _ = from.Close() }()
	must(t, from.Append(t.Context(), new(storetest.Writer).Make(30)))
	_, err = from.AppendLog(t.Context(), "j-1.1", 0, []byte("a line\n"))
	must(t, err)
	var file bytes.Buffer
	sum, err := backup.Write(t.Context(), from, &file)
	must(t, err)
	pg := replica(t, settings(placeOf(t, c.Database(t))))
	if _, err := backup.Restore(t.Context(), pg, bytes.NewReader(file.Bytes())); !errors.Is(err, store.ErrDeposed) {
		t.Fatalf("one who does not lead restores: %v", err)
	}
	must(t, pg.TryLead(t.Context()))
	there, err := backup.Restore(t.Context(), pg, bytes.NewReader(file.Bytes()))
	must(t, err)
	var again bytes.Buffer
	_, err = backup.Write(t.Context(), pg, &again)
	must(t, err)
	folder, err := sqlite.Open(t.TempDir())
	must(t, err)
	defer func() { _ = folder.Close() }()
	back, err := backup.Restore(t.Context(), folder, &again)
	must(t, err)
	if there != sum || back != sum {
		t.Errorf("SQLite %+v, PostgreSQL %+v, and back %+v", sum, there, back)
	}
	wantWritten(t, folder, 30)
}

// wantWritten compares the log with the log of a single writer.
func wantWritten(t testing.TB, s store.Store, n int) {
	t.Helper()
	got, err := s.WholeRecords(context.Background(), 0, n+1000)
	must(t, err)
	storetest.Same(t, got, new(storetest.Writer).Make(len(got)))
	if len(got) != n {
		t.Errorf("%d records, want %d", len(got), n)
	}
	storetest.Verify(t, s)
}

func TestPostgresConfig_ValidateNamesTheField(t *testing.T) {
	lane.Component(t, "postgres")
	good := postgres.Default("postgres://x/y", t.TempDir())
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for words, change := range map[string]func(*postgres.Config){
		"no address":         func(c *postgres.Config) { c.URL = "" },
		"data folder: none":  func(c *postgres.Config) { c.Dir = "" },
		"too short":          func(c *postgres.Config) { c.Lease = time.Millisecond },
		"is negative":        func(c *postgres.Config) { c.Patience = -1 },
		"write postgres://U": func(c *postgres.Config) { c.URL = "mysql://x:y:z" },
	} {
		bad := good
		change(&bad)
		if s, err := postgres.Open(t.Context(), bad); err == nil || !strings.Contains(err.Error(), words) {
			if err == nil {
				_ = s.Close()
			}
			t.Errorf("%q: %v", words, err)
		}
	}
	bad := good
	bad.URL = "postgres://nobody:hunter2@/none?host=" + t.TempDir()
	if _, err := postgres.Open(t.Context(), bad); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("no server: %v; want an error without the password", err)
	} else {
		fmt.Fprintln(t.Output(), "as a user reads it:", err)
	}
}
