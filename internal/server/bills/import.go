package bills

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/work/bill"
)

// Limits on an import.
const (
	mostBytes = 256 << 20 // as sent
	mostRow   = 2 << 20   // bytes of a row in JSON
	mostRows  = 5_000_000
	mostNames = 200 // files in one import
	atOnce    = 2   // imports of one user
	allAtOnce = 8
)

// errRow is a row that is not one of a bill.
var errRow = errors.New("a row is not one that scrimp bill import sends")

// errMany is an import with too many bills or rows.
var errMany = errors.New("it has more than")

// errMixed is a bill in several currencies.
var errMixed = errors.New("the files have lines in several currencies on the bill")

// errCut is an import that did not arrive whole.
var errCut = errors.New("cut short")

// Import keeps bills. It compares their content with the kept ones: the same bill changes nothing, and another one of
// the same provider, account and month replaces the kept one.
func (d *Service) Import(w http.ResponseWriter, r *http.Request) {
	names := r.URL.Query()["name"]
	if len(names) > mostNames || slices.ContainsFunc(names, func(n string) bool { return len(n) > 255 }) {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "name", "there are more than 200 names, or one is too long",
			"import fewer files at once", nil)
		return
	}
	if left, ok := d.Room(); ok && left.Bytes < r.ContentLength+reserve {
		reply.Problem(w, http.StatusInsufficientStorage, "the server's disk has no room for the bill",
			"make room on it, as with scrimp gc", nil)
		return
	}
	end, err := d.coming.Open(auth.CallerOf(r).User, atOnce, allAtOnce)
	if err != nil {
		w.Header().Set("Retry-After", "10")
		reply.Problem(w, http.StatusTooManyRequests, "too many bills are imported at once", "import one after the other", err)
		return
	}
	defer end()
	list, i, no := d.store(r.Context(), http.MaxBytesReader(w, r.Body, mostBytes), importing{names: names,
		by: auth.CallerOf(r).User, currency: r.URL.Query().Get("currency")})
	if no != nil {
		no.Answer(w)
		return
	}
	if i.changed {
		auth.CallOf(r).Act.Object, auth.CallOf(r).Act.Detail = i.digest[:16], strings.Join(names, " ")
	}
	reply.JSON(w, list)
}

// Keep keeps bills whose rows this server has packed, as Import does.
func (d *Service) Keep(ctx context.Context, rows io.Reader, names []string, by string) ([]client.ImportedBill,
	*reply.Refusal) {
	list, _, no := d.store(ctx, http.MaxBytesReader(nil, io.NopCloser(rows), mostBytes), importing{names: names, by: by})
	return list, no
}

// importing says where the rows of an import come from.
type importing struct {
	names    []string // of files
	by       string
	currency string // of bills that may replace those in another; "": none may
}

// store receives the rows and keeps their bills.
func (d *Service) store(ctx context.Context, rows io.Reader, from importing) (list []client.ImportedBill, i *arrived,
	no *reply.Refusal) {
	i, err := d.receive(rows)
	if i != nil {
		defer func() { _ = os.Remove(i.path) }() // kept files have another name by then
	}
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		no = &reply.Refusal{Status: http.StatusRequestEntityTooLarge, Title: "the bill is larger than 256 MiB in gzip",
			Fix: "import it in parts: one for each account or month"}
	case errors.Is(err, errCut):
		no = &reply.Refusal{Status: http.StatusBadRequest, Title: "the bill did not arrive whole", Fix: "import it again",
			Err: err}
	case errors.Is(err, errMixed):
		no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "currency", Title: "a bill has one currency",
			Fix: "leave out the files that are not of this bill", Err: err}
	case errors.Is(err, errMany):
		no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Title: "the bill is too large for one import",
			Fix: "import it in parts: one for each account or month", Err: err}
	case errors.Is(err, errRow):
		no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Title: "this is no bill",
			Fix: "send it with scrimp bill import", Err: err}
	case err != nil:
		no = unsaved(err)
	default:
		list, no = d.keep(ctx, i, from)
	}
	return list, i, no
}

func unsaved(err error) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "the bill was not saved", Fix: "import it again",
		Err: err}
}

// reserve is the disk space that an import leaves free, in bytes.
const reserve = 512 << 20

// arrived is an import that has arrived, in a file of its own.
type arrived struct {
	path    string
	digest  string // of all its rows
	bills   []*client.Bill
	sums    map[*client.Bill]map[money.Currency]decimal.Decimal
	content map[*client.Bill]*big.Int // sum of the hashes of its lines and unread rows, which may come in any order
	early   []bill.Row                // unread rows before the first line
	last    *client.Bill
	changed bool // the kept bills differ from those before
}

// receive writes the rows to a file and sums them by bill.
func (d *Service) receive(rows io.Reader) (*arrived, error) {
	if err := os.MkdirAll(d.folder(), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(d.folder(), ".import-*")
	if err != nil {
		return nil, err
	}
	i := &arrived{path: f.Name(), sums: map[*client.Bill]map[money.Currency]decimal.Decimal{},
		content: map[*client.Bill]*big.Int{}}
	all := sha256.New()
	out := &errWriter{to: f}
	err = eachRow(io.TeeReader(rows, out), func(row bill.Row, text []byte) error {
		_, _ = all.Write(append(text, '\n')) // a hash never fails
		return i.add(row)
	})
	if out.err != nil {
		err = out.err
	}
	i.digest = hex.EncodeToString(all.Sum(nil))
	if err == nil && len(i.bills) == 0 {
		err = fmt.Errorf("%w: it has no line", errRow)
	}
	return i, errors.Join(err, f.Sync(), f.Close())
}

// errWriter remembers that a write failed, to tell it from a read that failed.
type errWriter struct {
	to  io.Writer
	err error
}

func (w *errWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	w.err = cmp.Or(w.err, err)
	return n, err
}

// eachRow calls f with each row of an import.
func eachRow(in io.Reader, f func(row bill.Row, text []byte) error) error {
	packed, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("%w: %w", errRow, err)
	}
	lines := bufio.NewScanner(packed)
	lines.Buffer(make([]byte, 64<<10), mostRow)
	for n := 1; lines.Scan(); n++ {
		var row bill.Row
		dec := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&row); err != nil {
			return fmt.Errorf("%w: row %d: %w", errRow, n, err)
		}
		if n > mostRows {
			return fmt.Errorf("%w %d rows", errMany, mostRows)
		}
		if err := f(row, lines.Bytes()); err != nil {
			return fmt.Errorf("row %d: %w", n, err)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("%w: a row has more than %d bytes", errRow, mostRow)
	case err != nil:
		if big, is := errors.AsType[*http.MaxBytesError](err); is {
			return big
		}
		return fmt.Errorf("%w: %w", errCut, err)
	}
	return nil
}

// add counts a row. An unread row belongs to the bill of the line before it.
func (i *arrived) add(row bill.Row) error {
	for n := range row.Lines {
		l := &row.Lines[n]
		if err := l.Check(); err != nil {
			return fmt.Errorf("%w: %w", errRow, err)
		}
		b, err := i.billOf(l)
		if err != nil {
			return err
		}
		if b.Currency = cmp.Or(b.Currency, l.Currency); b.Currency != l.Currency {
			return fmt.Errorf("%w of %s in %s: %s and %s", errMixed, nameOf(b.Provider, b.Account), b.Month, b.Currency,
				l.Currency)
		}
		b.Lines++
		same := *l
		same.At = 0 // another file may have it in another line
		i.count(b, same)
		i.sum(b, l.Currency, l.Billed)
		if l.Start.Before(b.Since) {
			b.Since = l.Start
		}
		if l.End.After(b.Until) {
			b.Until = l.End
		}
	}
	switch p := row.Problem; {
	case p == nil && len(row.Lines) == 0:
		return fmt.Errorf("%w: it has neither lines nor a problem", errRow)
	case p != nil && i.last == nil:
		if len(i.early) >= mostEarly {
			return fmt.Errorf("%w: the first %d rows could not be read", errRow, mostEarly)
		}
		i.early = append(i.early, row)
		return nil
	case p != nil:
		i.problem(p)
	}
	return nil
}

// mostEarly bounds the unread rows before the first line.
const mostEarly = 10_000

func (i *arrived) problem(p *bill.Problem) {
	i.last.Unread++
	same := *p
	if same.Line = 0; same.Repeats > 0 {
		same.Repeats, same.Reason = 1, "" // it names a line
	}
	i.count(i.last, same)
	if p.Amount.Known {
		i.sum(i.last, p.Currency, p.Amount.Value)
	}
}

// billOf returns the bill of a line.
func (i *arrived) billOf(l *bill.Line) (*client.Bill, error) {
	month := l.Month().Format("2006-01")
	is := func(b *client.Bill) bool {
		return b.Provider == l.Provider && b.Account == l.Account && b.Month == month
	}
	if i.last != nil && is(i.last) {
		return i.last, nil
	}
	if at := slices.IndexFunc(i.bills, is); at >= 0 {
		i.last = i.bills[at]
		return i.last, nil
	}
	if len(i.bills) >= mostBills {
		return nil, fmt.Errorf("%w %d accounts and months", errMany, mostBills)
	}
	first := i.last == nil
	b := &client.Bill{Provider: l.Provider, Account: l.Account, Month: month, Since: l.Start, Until: l.End}
	i.last, i.bills = b, append(i.bills, b)
	i.sums[b], i.content[b] = map[money.Currency]decimal.Decimal{}, new(big.Int)
	if first {
		for _, row := range i.early {
			i.problem(row.Problem)
		}
	}
	return b, nil
}

func (i *arrived) sum(b *client.Bill, c money.Currency, a decimal.Decimal) {
	i.sums[b][c] = i.sums[b][c].Add(a)
}

// currencyOf returns the currency of a kept bill, or "" if it is not known.
func currencyOf(b *client.Bill) money.Currency {
	if b.Currency == "" && len(b.Totals) == 1 { // kept by an earlier version
		return b.Totals[0].Currency
	}
	return b.Currency
}

// keep puts the arrived bills into the index, all or none of them.
func (d *Service) keep(ctx context.Context, i *arrived, from importing) (list []client.ImportedBill,
	no *reply.Refusal) {
	d.setting.Lock()
	defer d.setting.Unlock()
	v, err := d.read(ctx)
	if err != nil {
		return nil, unreadIndex(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	for _, b := range i.bills {
		b.Digest, b.File = i.digestOf(b), i.digest
		b.Names, b.Imported, b.By = reply.List(from.names), now, from.by
		for _, c := range slices.Sorted(maps.Keys(i.sums[b])) {
			b.Totals = append(b.Totals, client.BillTotal{Currency: c, Amount: i.sums[b][c].String()})
		}
		done := client.ImportedBill{Bill: *b, Result: "new", Before: []client.BillTotal{}}
		at := v.find(b)
		if at >= 0 && v.Bills[at].Digest == b.Digest {
			if !d.has(v.Bills[at].File) { // lost, as after a restore from a backup of an earlier release
				v.Bills[at].File, i.changed = i.digest, true
			}
			done.Bill, done.Result = v.Bills[at], "same"
			list = append(list, done)
			continue
		}
		if m, closed := v.closed(b.Month); closed {
			return nil, closedRefusal(m)
		}
		i.changed = true
		if at >= 0 {
			if was := currencyOf(&v.Bills[at]); was != "" && was != b.Currency && from.currency != string(b.Currency) {
				return nil, otherCurrency(b, was)
			}
			done.Result, done.Before = "replaced", v.Bills[at].Totals
			v.Bills[at] = *b
		} else {
			v.Bills = append(v.Bills, *b)
		}
		list = append(list, done)
	}
	if len(v.Bills) > mostBills {
		return nil, &reply.Refusal{Status: http.StatusUnprocessableEntity,
			Title: fmt.Sprintf("the server keeps %d bills", mostBills), Fix: "import fewer accounts"}
	}
	if !i.changed {
		return list, nil
	}
	if err = os.Rename(i.path, filepath.Join(d.folder(), i.digest+suffix)); err == nil {
		err = durable.Folder(d.folder())
	}
	if err == nil {
		err = d.write(ctx, v)
	}
	if err != nil {
		return nil, unsaved(err)
	}
	d.sweep(&v)
	return list, nil
}

// nameOf names the provider and the account of a bill.
func nameOf(provider, account string) string {
	if account == "" {
		return provider + ", no account,"
	}
	return provider + " " + account
}

func otherCurrency(b *client.Bill, was money.Currency) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusConflict, Field: "currency",
		Title: fmt.Sprintf("the kept bill of %s in %s is in %s, and this one is in %s", nameOf(b.Provider, b.Account),
			b.Month, was, b.Currency),
		Fix: fmt.Sprintf("import the right file; if the provider changed the currency, --currency %s replaces the bill",
			b.Currency)}
}
