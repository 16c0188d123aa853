package bills

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
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

// errMixed is a bill in several currencies.
var errMixed = errors.New("the files have lines in several currencies on the bill")

// errCut is an import that did not arrive whole.
var errCut = errors.New("cut short")

// Import keeps bills. It compares their content with the kept ones: the same bill changes nothing, and another one of
// the same provider, account and month replaces the kept one.
func (d *Desk) Import(w http.ResponseWriter, r *http.Request) {
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
	i, err := d.receive(w, r)
	if i != nil {
		defer func() { _ = os.Remove(i.path) }() // kept files have another name by then
	}
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		reply.Problem(w, http.StatusRequestEntityTooLarge, "the bill is larger than 256 MiB in gzip", "import it in parts: "+
			"one for each account or month", nil)
	case errors.Is(err, errCut):
		reply.Problem(w, http.StatusBadRequest, "the bill did not arrive whole", "import it again", err)
	case errors.Is(err, errMixed):
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "currency", "a bill has one currency",
			"leave out the files that are not of this bill", err)
	case errors.Is(err, errRow):
		reply.Problem(w, http.StatusUnprocessableEntity, "this is no bill", "send it with scrimp bill import", err)
	case err != nil:
		reply.Problem(w, http.StatusServiceUnavailable, "the bill was not saved", "import it again", err)
	default:
		d.keep(w, r, i, names)
	}
}

// reserve is the disk space that an import leaves free, in bytes.
const reserve = 512 << 20

// arrived is an import that has arrived, in a file of its own.
type arrived struct {
	path   string
	digest string // of all its rows
	bills  []*client.Bill
	sums   map[*client.Bill]map[money.Currency]decimal.Decimal
	hashes map[*client.Bill]hash.Hash
	early  []bill.Row // unread rows before the first line
	last   *client.Bill
}

// receive writes the rows to a file and sums them by bill.
func (d *Desk) receive(w http.ResponseWriter, r *http.Request) (*arrived, error) {
	if err := os.MkdirAll(d.folder(), 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(d.folder(), ".import-*")
	if err != nil {
		return nil, err
	}
	i := &arrived{path: f.Name(), sums: map[*client.Bill]map[money.Currency]decimal.Decimal{},
		hashes: map[*client.Bill]hash.Hash{}}
	all := sha256.New()
	out := &errWriter{to: f}
	err = eachRow(io.TeeReader(http.MaxBytesReader(w, r.Body, mostBytes), out), func(row bill.Row, text []byte) error {
		_, _ = all.Write(append(text, '\n')) // a hash never fails
		return i.add(row, text)
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
			return fmt.Errorf("%w: it has more than %d rows", errRow, mostRows)
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
func (i *arrived) add(row bill.Row, text []byte) error {
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
			return fmt.Errorf("%w of %s %s in %s: %s and %s", errMixed, b.Provider, b.Account, b.Month, b.Currency, l.Currency)
		}
		b.Lines++
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
	_, _ = i.hashes[i.last].Write(append(text, '\n')) // a hash never fails
	return nil
}

// mostEarly bounds the unread rows before the first line.
const mostEarly = 10_000

func (i *arrived) problem(p *bill.Problem) {
	i.last.Unread++
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
		return nil, fmt.Errorf("%w: it has more than %d accounts and months", errRow, mostBills)
	}
	first := i.last == nil
	b := &client.Bill{Provider: l.Provider, Account: l.Account, Month: month, Since: l.Start, Until: l.End}
	i.last, i.bills = b, append(i.bills, b)
	i.sums[b], i.hashes[b] = map[money.Currency]decimal.Decimal{}, sha256.New()
	if first {
		for _, row := range i.early {
			i.problem(row.Problem)
		}
		_ = json.NewEncoder(i.hashes[b]).Encode(i.early) // a hash never fails
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
func (d *Desk) keep(w http.ResponseWriter, r *http.Request, i *arrived, names []string) {
	d.setting.Lock()
	defer d.setting.Unlock()
	v, err := d.read(r.Context())
	if err != nil {
		unread(w, err)
		return
	}
	now, by := time.Now().UTC().Truncate(time.Second), auth.CallerOf(r).User
	var list []client.ImportedBill
	changed, currency := false, r.URL.Query().Get("currency")
	for _, b := range i.bills {
		b.Digest, b.File = hex.EncodeToString(i.hashes[b].Sum(nil)), i.digest
		b.Names, b.Imported, b.By = reply.List(names), now, by
		for _, c := range slices.Sorted(maps.Keys(i.sums[b])) {
			b.Totals = append(b.Totals, client.BillTotal{Currency: c, Amount: i.sums[b][c].String()})
		}
		done := client.ImportedBill{Bill: *b, Result: "new", Before: []client.BillTotal{}}
		at := v.find(b)
		if at >= 0 && v.Bills[at].Digest == b.Digest {
			if !d.has(v.Bills[at].File) { // lost, as after a restore from a backup of an earlier release
				v.Bills[at].File, changed = i.digest, true
			}
			done.Bill, done.Result = v.Bills[at], "same"
			list = append(list, done)
			continue
		}
		if m, closed := v.closed(b.Month); closed {
			closedProblem(w, m)
			return
		}
		changed = true
		if at >= 0 {
			if was := currencyOf(&v.Bills[at]); was != "" && was != b.Currency && currency != string(b.Currency) {
				reply.FieldProblem(w, http.StatusConflict, "currency", fmt.Sprintf("the kept bill of %s %s in %s is in %s, and "+
					"this one is in %s", b.Provider, b.Account, b.Month, was, b.Currency), fmt.Sprintf("import the right file; if "+
					"the provider changed the currency, --currency %s replaces the bill", b.Currency), nil)
				return
			}
			done.Result, done.Before = "replaced", v.Bills[at].Totals
			v.Bills[at] = *b
		} else {
			v.Bills = append(v.Bills, *b)
		}
		list = append(list, done)
	}
	if len(v.Bills) > mostBills {
		reply.Problem(w, http.StatusUnprocessableEntity, fmt.Sprintf("the server keeps %d bills", mostBills),
			"import fewer accounts", nil)
		return
	}
	if !changed {
		reply.JSON(w, list)
		return
	}
	auth.CallOf(r).Act.Object, auth.CallOf(r).Act.Detail = i.digest[:16], strings.Join(names, " ")
	if err = os.Rename(i.path, filepath.Join(d.folder(), i.digest+suffix)); err == nil {
		err = durable.Folder(d.folder())
	}
	if err == nil {
		err = d.write(r.Context(), v)
	}
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the bill was not saved", "import it again", err)
		return
	}
	d.sweep(&v)
	reply.JSON(w, list)
}
