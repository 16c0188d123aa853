package server

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/bill"
)

// billed is a world with ended machines of two teams, and the month in which they began.
type billed struct {
	*world
	month     string
	begin     time.Time
	instances []string
}

func newBilled(t *testing.T) *billed {
	t.Helper()
	w := &billed{world: newWorldOf(t, &firm{}, nil)}
	for i := range 4 {
		w.must("POST", "/v1/jobs", aJob(fmt.Sprint("j", i), fmt.Sprint("team-", i%2)), nil)
	}
	w.begin = w.control.Now().UTC()
	w.month = w.begin.Format("2006-01")
	for n, id := range w.booting(4) {
		w.instances = append(w.instances, w.instance(id))
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
		w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, 30*time.Minute)
		w.event(core.InstanceEnded{Instance: w.instances[n], Until: w.control.Now().Add(30 * time.Minute), Cause: "terminated"}, 30*time.Minute)
	}
	return w
}

// line is a charge for a machine.
func (w *billed) line(n int, category bill.Category, amount string) bill.Line {
	d, err := decimal.Parse(amount)
	must.Do(w.t, err)
	return bill.Line{At: n + 2, Provider: "cloud", Account: "1", Category: category, Resource: w.instances[n], Currency: money.USD, Start: w.begin,
		End: w.begin.Add(time.Hour), Billed: d, Description: amount}
}

// imports sends lines as scrimp bill import does.
func (w *billed) imports(token string, rows ...bill.Row) (code int, list []client.ImportedBill, p client.Problem) {
	w.t.Helper()
	rec, p := w.ask("POST", "/v1/bills?name=a.csv", token, packed(w.t, rows...))
	if rec.Code == 200 {
		must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &list))
	}
	return rec.Code, list, p
}

func packed(t testing.TB, rows ...bill.Row) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, row := range rows {
		must.Do(t, json.NewEncoder(z).Encode(row))
	}
	must.Do(t, z.Close())
	return b.String()
}

func rowsOf(lines ...bill.Line) (rows []bill.Row) {
	for _, l := range lines {
		rows = append(rows, bill.Row{Lines: []bill.Line{l}})
	}
	return rows
}

// ledger sums the exported costs of the month by machine.
func (w *billed) ledger() map[string]string {
	w.t.Helper()
	rec, p := w.ask("GET", "/v1/export/costs?since="+w.month+"&until="+w.begin.AddDate(0, 1, 1-w.begin.Day()).Format("2006-01"), auth.OwnerName, nil)
	if rec.Code != 200 {
		w.t.Fatal(p)
	}
	rows, err := csv.NewReader(rec.Body).ReadAll()
	must.Do(w.t, err)
	instance, cost := slices.Index(rows[0], "instance"), slices.Index(rows[0], "cost")
	sums := map[string]*big.Rat{}
	for _, row := range rows[1:] {
		id := strings.TrimPrefix(row[instance], "'")
		if sums[id] == nil {
			sums[id] = new(big.Rat)
		}
		amount, ok := new(big.Rat).SetString(row[cost])
		if !ok {
			w.t.Fatal(row)
		}
		sums[id].Add(sums[id], amount)
	}
	text := map[string]string{}
	for id, sum := range sums {
		text[id] = sum.FloatString(12)
	}
	return text
}

func (w *billed) books() (v trueup.Comparison) {
	w.t.Helper()
	w.must("POST", "/v1/bills/reconcile", client.BookBills{Month: w.month}, &v)
	return v
}

// Booked bills make the ledger of each machine equal to its bill, and its job's costs, its team's and the verified
// ledger with it. A second booking changes nothing. A revised bill leaves what it alone would have left.
func TestBills_BookingMakesTheLedgerEqualToTheBill(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	own := w.ledger()
	first := rowsOf(w.line(0, bill.Compute, "12.3456789012345"), w.line(0, bill.Tax, "1.1"), w.line(1, bill.Compute, "0.5"), w.line(1, bill.Credit, "-0.75"),
		w.line(2, bill.Storage, "0.000000000001"))
	code, list, p := w.imports(auth.OwnerName, first...)
	if code != 200 || len(list) != 1 || list[0].Result != "new" || list[0].Lines != 5 || list[0].Totals[0].Amount != "13.1956789012355" || list[0].Month != w.month {
		t.Fatalf("%d %+v %+v", code, list, p)
	}
	var dry trueup.Comparison
	w.must("GET", "/v1/bills/reconcile?month="+w.month, nil, &dry)
	if got := w.ledger(); !maps.Equal(got, own) || dry.Booked || dry.Booking[0].Count == 0 || len(dry.NotBilled) != 1 || len(dry.Bills) != 1 {
		t.Fatalf("a dry run leaves %v, and says %+v", got, dry)
	}
	v := w.books()
	want := maps.Clone(own)
	want[w.instances[0]], want[w.instances[1]] = "13.445678901234", "-0.250000000000"
	want[w.instances[2]] = "0.000000000001"
	if got := w.ledger(); !maps.Equal(got, want) || !v.Booked || v.Booking[0].Amount != dry.Booking[0].Amount {
		t.Errorf("the ledger has %v\nwant %v", got, want)
	}
	var costs client.Costs
	w.must("GET", "/v1/costs?by=job", nil, &costs)
	for _, l := range costs.Lines {
		if l.Name == "j0" && l.Spent.String() != "13.445678901234" || l.Name == "j1" && l.Spent.String() != "-0.25" {
			t.Errorf("%s costs %v", l.Name, l.Spent)
		}
	}
	phases := money.Amount{} // the engine of this test bills nothing, so that corrections alone are billed
	for _, l := range costs.Lines {
		if phases = phases.Add(*l.Billed); l.Spent != l.Billed.Add(*l.Accrued).Add(l.Unbooked) {
			t.Errorf("%s costs %v: %v billed, %v accrued, %v not booked", l.Name, l.Spent, l.Billed, l.Accrued, l.Unbooked)
		}
	}
	if phases != v.Booking[0].Amount {
		t.Errorf("%v are billed, want %v", phases, v.Booking[0].Amount)
	}
	w.must("GET", "/v1/ledger/verify", nil, nil)
	if again := w.books(); len(again.Booking) != 1 || again.Booking[0].Count != 0 || again.Booking[0].Before != v.Booking[0].Amount {
		t.Errorf("a second time books %+v", again.Booking)
	}
	if code, list, _ := w.imports(auth.OwnerName, first...); code != 200 || list[0].Result != "same" {
		t.Errorf("the same bill again: %d %+v", code, list)
	}
	if code, list, _ = w.imports(auth.OwnerName, rowsOf(w.line(1, bill.Compute, "7"))...); code != 200 || list[0].Result != "replaced" || list[0].Before[0].Amount != "13.1956789012355" {
		t.Fatalf("a revised bill: %d %+v", code, list)
	}
	w.books()
	want = maps.Clone(own)
	want[w.instances[1]] = "7.000000000000"
	if got := w.ledger(); !maps.Equal(got, want) {
		t.Errorf("after a revised bill the ledger has %v\nwant %v", got, want)
	}
	w.must("GET", "/v1/ledger/verify", nil, nil)
	files, err := os.ReadDir(filepath.Join(w.opts.Dir, "bills"))
	if err != nil || len(files) != 1 {
		t.Errorf("%v: %d files are kept, want 1", err, len(files))
	}
}

// Late lines on the bill of the next month count in the month of their charge. Lines of two accounts are bills of
// their own, and one that is revised leaves the other's file.
func TestBills_LateLinesCountInTheirMonth(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	late := w.line(0, bill.Compute, "3")
	late.PeriodStart = w.begin.AddDate(0, 1, 1-w.begin.Day())
	other := w.line(1, bill.Compute, "4")
	other.Account = "2"
	problem := bill.Row{Problem: &bill.Problem{Line: 9, Reason: "no number", Amount: bill.Number{Value: other.Billed, Known: true}, Currency: money.USD,
		About: &bill.About{Resource: "i-of-nobody"}}}
	code, list, p := w.imports(auth.OwnerName, append(append([]bill.Row{problem}, rowsOf(w.line(0, bill.Compute, "1"), late, other)...), problem)...)
	if code != 200 || len(list) != 3 || list[0].Unread != 1 || list[2].Unread != 1 || list[0].Totals[0].Amount != "5" {
		t.Fatalf("%d %+v %+v", code, list, p)
	}
	v := w.books()
	if got := w.ledger(); got[w.instances[0]] != "4.000000000000" || got[w.instances[1]] != "4.000000000000" {
		t.Errorf("%v", got)
	}
	if tot := v.Totals[0]; tot.Unread.Count != 2 || tot.File.String() != "16" || tot.Matched.Amount.String() != "8" || len(v.Bills) != 3 {
		t.Errorf("%+v", tot)
	}
	other.Billed = late.Billed
	if _, list, _ = w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, "1"), other)...); list[0].Result != "replaced" || list[1].Result != "replaced" {
		t.Errorf("%+v", list) // the unread rows are no longer on them
	}
	w.books()
	if got := w.ledger(); got[w.instances[0]] != "4.000000000000" || got[w.instances[1]] != "3.000000000000" {
		t.Errorf("%v", got)
	}
}

// A bill whose rows are not all read books nothing for a machine that they may be of: not even the rows of it that were
// read, and what is booked of it stays.
func TestBills_UnreadRowsOfAMachineBookNothing(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, "1"), w.line(1, bill.Compute, "1"), w.line(2, bill.Compute, "1"))...)
	w.books()
	want := w.ledger()
	unread := bill.Row{Problem: &bill.Problem{Line: 4, Reason: "the row is in EUR", Currency: "EUR", About: &bill.About{Resource: w.instances[0]}}}
	w.imports(auth.OwnerName, append(rowsOf(w.line(0, bill.Compute, "5"), w.line(1, bill.Compute, "5"), w.line(2, bill.Compute, "1")), unread)...)
	v := w.books()
	want[w.instances[1]] = "5.000000000000"
	if got := w.ledger(); !maps.Equal(got, want) || len(v.Waits) != 1 || v.Waits[0].Instance != w.instances[0] || v.AllUnread != 1 {
		t.Errorf("an unread row of the first machine: %v, want %v; %+v waits", got, want, v.Waits)
	}
	unread.Problem.About = nil
	w.imports(auth.OwnerName, append(rowsOf(w.line(0, bill.Compute, "7"), w.line(1, bill.Compute, "7")), unread)...)
	if v = w.books(); !maps.Equal(w.ledger(), want) || len(v.Waits) != 3 {
		t.Errorf("a torn row: %v, want %v; %+v waits", w.ledger(), want, v.Waits)
	}
}

// A bill has one currency: neither files in two become one bill, nor does a bill in another replace the kept one by itself.
func TestBills_RefusesAnotherCurrencyUnlessItIsNamed(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	usd, eur := w.line(0, bill.Compute, "9"), w.line(0, bill.Compute, "8")
	eur.Currency = "EUR"
	if code, _, p := w.imports(auth.OwnerName, rowsOf(usd, eur)...); code != 422 || p.Field != "currency" || !strings.Contains(p.Detail, "USD and EUR") {
		t.Errorf("both: %d %+v", code, p)
	}
	unread := bill.Row{Problem: &bill.Problem{Line: 4, Reason: "the row is in EUR", Currency: "EUR", Amount: bill.Number{Value: eur.Billed, Known: true}}}
	if code, list, p := w.imports(auth.OwnerName, append(rowsOf(usd), unread)...); code != 200 || list[0].Currency != "USD" {
		t.Fatalf("an unread row in EUR: %d %+v %+v", code, list, p)
	}
	if code, _, p := w.imports(auth.OwnerName, rowsOf(eur)...); code != 409 || p.Field != "currency" || !strings.Contains(p.Fix, "--currency EUR") {
		t.Errorf("EUR for USD: %d %+v", code, p)
	}
	for _, c := range []struct {
		currency string
		code     int
	}{{"GBP", 409}, {"EUR", 200}} {
		if rec, p := w.ask("POST", "/v1/bills?currency="+c.currency, auth.OwnerName, packed(t, rowsOf(eur)...)); rec.Code != c.code {
			t.Errorf("%s: %d %+v, want %d", c.currency, rec.Code, p, c.code)
		}
	}
}

// A closed month takes no bill, no booking and no fee, and says how to open it. Only an admin closes and books.
func TestBills_ClosedMonthRefuses(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	line := w.line(0, bill.Compute, "1")
	line.Start = w.begin.AddDate(0, -1, -w.begin.Day()+10) // within last month
	line.End = line.Start.Add(time.Hour)
	last := line.Start.Format("2006-01")
	if rec, p := w.ask("PUT", "/v1/bills/months", auth.OwnerName, client.SetBillMonth{Month: w.month, Closed: true}); rec.Code != 422 || p.Field != "month" {
		t.Errorf("a month that is not over: %d %+v", rec.Code, p)
	}
	if code, _, p := w.imports(auth.OwnerName, rowsOf(line)...); code != 200 {
		t.Fatal(p)
	}
	w.must("PUT", "/v1/bills/months", client.SetBillMonth{Month: last, Closed: true}, nil)
	if code, list, _ := w.imports(auth.OwnerName, rowsOf(line)...); code != 200 || list[0].Result != "same" {
		t.Errorf("the kept bill of a closed month: %d %+v", code, list)
	}
	line.Billed = line.Billed.Add(line.Billed)
	code, _, no := w.imports(auth.OwnerName, rowsOf(line, w.line(0, bill.Compute, "2"))...)
	rec, p := w.ask("POST", "/v1/bills/reconcile", auth.OwnerName, client.BookBills{Month: last})
	fee, q := w.ask("PUT", "/v1/chargeback/fees", auth.OwnerName, client.Fee{Name: "tracking", Amount: money.Picos(1e12), Currency: money.USD})
	for _, c := range []struct {
		code int
		p    client.Problem
	}{{code, no}, {rec.Code, p}, {fee.Code, q}} {
		if c.code != 409 || !strings.Contains(c.p.Title, last) || !strings.Contains(c.p.Fix, "scrimp bill reopen "+last) {
			t.Errorf("%d %+v", c.code, c.p)
		}
	}
	w.must("PUT", "/v1/chargeback/fees", client.Fee{Name: "tracking", Amount: money.Picos(1e12), Currency: money.USD, Since: w.month}, nil)
	var v client.Bills
	w.must("GET", "/v1/bills", nil, &v)
	if len(v.Bills) != 1 || !v.Bills[0].Closed || len(v.Closed) != 1 || v.Closed[0].By == "" {
		t.Errorf("%+v", v)
	}
	w.must("PUT", "/v1/bills/months", client.SetBillMonth{Month: last}, nil)
	if code, _, p := w.imports(auth.OwnerName, rowsOf(line)...); code != 200 {
		t.Errorf("an open month: %d %+v", code, p)
	}
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	vi, op := w.user("vi", identity.Grant{Team: identity.Everywhere, Role: identity.Viewer}), w.user("op", identity.Grant{Team: "team-0", Role: identity.Admin})
	for _, c := range []struct {
		method, path, token string
		code                int
	}{{"GET", "/v1/bills", vi, 200}, {"GET", "/v1/bills", op, 403}, {"POST", "/v1/bills", vi, 403}, {"GET", "/v1/bills/reconcile?month=" + last, vi, 200},
		{"POST", "/v1/bills/reconcile", vi, 403}, {"PUT", "/v1/bills/months", vi, 403}, {"GET", "/v1/bills/reconcile", op, 403}} {
		if rec, _ := w.ask(c.method, c.path, c.token, nil); rec.Code != c.code {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, rec.Code, c.code)
		}
	}
}

// What is no bill, is cut short or out of bounds is refused with the row, and nothing is kept of it. A file that an
// interrupted import left is removed by the next one. A list names a lost file, and the same import brings it back.
func TestBills_RefusesWhatIsNoBillAndKeepsNothing(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	whole := packed(t, rowsOf(w.line(0, bill.Compute, "1"))...)
	change := func(f func(*bill.Line)) string {
		l := w.line(0, bill.Compute, "1")
		f(&l)
		return packed(t, rowsOf(l)...)
	}
	huge, _ := decimal.Parse("1e13")
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"no gzip": {"a,b\n", 422}, "empty": {packed(t), 422}, "cut": {whole[:len(whole)-9], 400}, "no row": {packed(t, bill.Row{}), 422},
		"no provider": {change(func(l *bill.Line) { l.Provider = "" }), 422}, "currency": {change(func(l *bill.Line) { l.Currency = "XXQ" }), 422},
		"huge": {change(func(l *bill.Line) { l.Billed = huge }), 422}, "category": {change(func(l *bill.Line) { l.Category = "rent" }), 422},
		"backwards": {change(func(l *bill.Line) { l.End = l.Start.Add(-1) }), 422}, "year": {change(func(l *bill.Line) { l.End = l.End.AddDate(900, 0, 0) }), 422},
		"problems alone": {packed(t, bill.Row{Problem: &bill.Problem{Reason: "torn"}}), 422},
	} {
		if rec, p := w.ask("POST", "/v1/bills", auth.OwnerName, c.body); rec.Code != c.code || p.Fix == "" {
			t.Errorf("%s: %d %+v", name, rec.Code, p)
		}
	}
	if rec, _ := w.ask("GET", "/v1/bills/reconcile?month="+w.month, auth.OwnerName, nil); rec.Code != 404 {
		t.Errorf("without a bill: %d", rec.Code)
	}
	dir := filepath.Join(w.opts.Dir, "bills")
	files, _ := os.ReadDir(dir)
	if len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
	orphan := filepath.Join(dir, strings.Repeat("0", 64)+".jsonl.gz")
	must.Do(t, os.WriteFile(orphan, []byte("x"), 0o600))
	if code, _, p := w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, "1"))...); code != 200 {
		t.Fatal(p)
	}
	files, _ = os.ReadDir(dir)
	if len(files) != 1 || files[0].Name() == filepath.Base(orphan) {
		t.Errorf("%v", files)
	}
	must.Do(t, os.Remove(filepath.Join(dir, files[0].Name())))
	if rec, p := w.ask("POST", "/v1/bills/reconcile", auth.OwnerName, client.BookBills{}); rec.Code != 400 || p.Field != "month" {
		t.Errorf("a booking of no month: %d %+v", rec.Code, p) // it booked the current one
	}
	if rec, p := w.ask("POST", "/v1/bills/reconcile", auth.OwnerName, client.BookBills{Month: w.month}); rec.Code != 409 || !strings.Contains(p.Fix, "import") {
		t.Errorf("%d %+v", rec.Code, p)
	}
	if code, _, p := w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, "1"))...); code != 200 {
		t.Error(p)
	}
	w.books()
}
