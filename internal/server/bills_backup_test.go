package server

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/bills"
	"scrimp/internal/store/backup"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
)

// A backup holds the rows of the kept bills. The restored server compares them with the ledger as the other one did,
// books the same and then has the same ledger.
func TestBackup_RestoresTheRowsOfBills(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	other := w.line(1, bill.Compute, "4")
	other.Account = "2"
	w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, "3"), w.line(0, bill.Tax, "0.3"))...)
	w.imports(auth.OwnerName, rowsOf(other)...)
	rec, p := w.ask("GET", "/v1/backup", auth.OwnerName, nil)
	if rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	file := rec.Body.Bytes()
	sum, err := backup.Whole{Store: w.store, Bills: bills.Folder(w.opts.Dir)}.SumOf(t.Context())
	if err != nil || sum.Bills != 2 {
		t.Fatalf("%+v, %v: want two imports", sum, err)
	}
	if got, err := backup.Check(bytes.NewReader(file)); err != nil || got != sum {
		t.Errorf("checked %+v, want %+v, %v", got, sum, err)
	}
	var before, after trueup.Comparison
	w.must("GET", "/v1/bills/reconcile?month="+w.month, nil, &before)
	dir := fast.Dir(t)
	restore := func(into string, file []byte) error {
		st, err := sqlite.Open(dir)
		must.Do(t, err)
		got, err := backup.Whole{Store: st, Bills: into}.Restore(t.Context(), bytes.NewReader(file))
		if err == nil && got != sum {
			t.Errorf("restored %+v, were %+v", got, sum)
		}
		must.Do(t, st.Close())
		return err
	}
	if err := restore("", file); err == nil || !strings.Contains(err.Error(), "bills") {
		t.Errorf("without a folder: %v", err)
	}
	if err := restore(bills.Folder(dir), file); err != nil { // goes on where the one above stopped
		t.Fatal(err)
	}
	if err := restore(bills.Folder(dir), file); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a full folder: %v", err)
	}
	names, _ := os.ReadDir(bills.Folder(w.opts.Dir))
	for _, n := range names {
		a, _ := os.ReadFile(filepath.Join(bills.Folder(w.opts.Dir), n.Name()))
		b, err := os.ReadFile(filepath.Join(bills.Folder(dir), n.Name()))
		if err != nil || !bytes.Equal(a, b) || len(a) == 0 {
			t.Errorf("%s: %v, %d bytes of %d", n.Name(), err, len(b), len(a))
		}
	}
	again := &billed{world: newWorldOf(t, &firm{}, func(o *Options) { o.Dir = dir }), month: w.month, begin: w.begin, instances: w.instances}
	again.must("GET", "/v1/bills/reconcile?month="+w.month, nil, &after)
	if !reflect.DeepEqual(before, after) || len(after.Bills) != 2 {
		t.Errorf("before the backup\n%+v\nafter the restoration\n%+v", before, after)
	}
	w.books()
	again.books()
	if a, b := w.ledger(), again.ledger(); !maps.Equal(a, b) || a[w.instances[0]] != "3.300000000000" || a[w.instances[1]] != "4.000000000000" {
		t.Errorf("booked, the ledger has %v, of the restored server %v", a, b)
	}
}

// A backup without rows that its list of bills names is still whole: they were lost earlier, and the server says so.
func TestBackup_LeavesOutLostRows(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, "3"))...)
	if err := os.RemoveAll(bills.Folder(w.opts.Dir)); err != nil {
		t.Fatal(err)
	}
	rec, _ := w.ask("GET", "/v1/backup", auth.OwnerName, nil)
	if sum, err := backup.Check(rec.Body); err != nil || sum.Bills != 0 {
		t.Errorf("%+v, %v", sum, err)
	}
	if rec, p := w.ask("POST", "/v1/bills/reconcile", auth.OwnerName, client.BookBills{Month: w.month}); rec.Code != 409 {
		t.Errorf("%d %+v", rec.Code, p)
	}
}
