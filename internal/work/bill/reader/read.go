package reader

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/record"
)

// mostAccounts bounds the accounts whose currency is remembered.
const mostAccounts = 10_000

// numeric lists the fields that show how a file writes numbers.
var numeric = []field{fieldBilled, fieldEffective, fieldList, fieldQuantity, fieldUnitPrice}

// sample learns from the rows read ahead how the file writes numbers and dates, and each account's currency.
func (r *Reader) sample() {
	styles, orders := map[numbers]int{}, map[dates]int{}
	votes := map[string]map[money.Currency]int{}
	for _, c := range r.ahead {
		if c.Fault != "" || len(c.Fields) != len(r.header) {
			continue
		}
		cells := &row{Reader: r, fields: c.Fields}
		for _, f := range numeric {
			styles[styleOf(plainly(cells.text(f)))]++
		}
		for _, f := range []field{fieldStart, fieldEnd, fieldPeriodStart} {
			if d, sure := datesOf(cells.text(f)); sure {
				orders[d]++
			}
		}
		cells.vote(votes)
	}
	r.numbers = point
	if styles[comma] > styles[point] || styles[comma]+styles[point] == 0 && r.looksContinental() {
		r.numbers = comma
	}
	if orders[dayFirst] > orders[monthFirst] || orders[dayFirst]+orders[monthFirst] == 0 && r.numbers == comma {
		r.dates = dayFirst
	}
	r.currency = map[string]money.Currency{}
	for account, by := range votes {
		r.currency[account] = mostOf(by)
	}
}

// vote counts the currency of the row for its account.
func (c *row) vote(votes map[string]map[money.Currency]int) {
	code := money.Currency(c.text(fieldCurrency))
	if !bill.IsCurrency(code) || len(votes) >= mostAccounts {
		return
	}
	account := c.account()
	if votes[account] == nil {
		votes[account] = map[money.Currency]int{}
	}
	votes[account][code]++
}

// looksContinental reports whether a file without a telling number probably writes a decimal comma: its header is
// translated, or a semicolon parts its cells.
func (r *Reader) looksContinental() bool {
	csv, isCSV := r.from.(*record.Cells)
	return isCSV && csv.Comma == ';' ||
		slices.ContainsFunc(r.header, func(name string) bool { return strings.Contains(name, " (") })
}

// mostOf is the currency with the most votes, and the first by name of those with as many.
func mostOf(votes map[money.Currency]int) (best money.Currency) {
	for code, n := range votes {
		if n > votes[best] || n == votes[best] && code < best {
			best = code
		}
	}
	return best
}

// row holds a row's cells, and the first error of reading them.
type row struct {
	*Reader
	fields []string
	err    error
}

// text returns a cell; "" without such a column, or with the word that a database writes for no value.
func (c *row) text(f field) string {
	at := c.at[f]
	if at < 0 || at >= len(c.fields) {
		return ""
	}
	return record.Plain(c.fields[at])
}

// fail keeps the first error with its column.
func (c *row) fail(f field, err error) {
	if c.err == nil && err != nil {
		c.err = fmt.Errorf("%s: %w", c.form.asWritten(c.header[c.at[f]]), err)
	}
}

// number parses a cell; an empty one is unknown.
func (c *row) number(f field, bound decimal.Decimal) bill.Number {
	n, err := c.numbers.read(c.text(f))
	if err == nil && n.Known && (n.Value.Cmp(bound) > 0 || n.Value.Cmp(bound.Neg()) < 0) {
		err = fmt.Errorf("%.40q is beyond %.60s", c.text(f), bound)
	}
	c.fail(f, err)
	return n
}

func (c *row) moment(f field) (t time.Time, day bool) {
	text := c.text(f)
	if text == "" {
		return t, false
	}
	t, day, err := c.dates.read(text)
	c.fail(f, err)
	return t, day
}

// account identifies an account, which may have its own currency.
func (c *row) account() string { return c.provider() + "\x00" + c.accountID() }

// accountID returns the account that the invoice is for. Under a Microsoft Customer Agreement each billing profile of
// an account has its own invoices, in its own currency.
func (c *row) accountID() string {
	id, profile := c.text(fieldAccount), c.text(fieldProfile)
	profile = profile[strings.LastIndexByte(profile, '/')+1:] // some exports write a path that begins with the account
	if profile == "" || profile == id || strings.HasSuffix(id, "/"+profile) {
		return id
	}
	return id + "/" + profile
}

// noProvider is the provider of a file without such a column. A row whose cell is empty is not read: its charge may be
// on the bill of another row's provider, and would be there twice once the provider fills the cell.
const noProvider = "(unknown)"

func (c *row) provider() string {
	if p := c.text(fieldProvider); p != "" {
		return p
	}
	if c.form.provider == "" && c.at[fieldProvider] < 0 {
		return noProvider
	}
	return c.form.provider
}

// amount returns the billed amount, as far as its cells are readable.
func (c *row) amount() (bill.Number, money.Currency) {
	code := money.Currency(c.text(fieldCurrency))
	if !bill.IsCurrency(code) {
		code = ""
	}
	n, _ := c.numbers.read(c.text(fieldBilled)) // a value with an error is unambiguous
	if n.Known && c.at[fieldCredits] >= 0 {
		list, err := creditsOf(c.text(fieldCredits))
		if err != nil {
			return bill.Number{}, code
		}
		for _, l := range list {
			n.Value = n.Value.Add(l.amount)
		}
	}
	return n, code
}

// count adds a record to what identifies the content of the file, and returns what identifies a row without a fault in
// whatever encoding a file has it.
func (r *Reader) count(c record.Record) record.Sum {
	if c.Fault != "" || len(c.Fields) < len(r.header) {
		_, _ = fmt.Fprintf(r.content, "%x %q %q", c.Sum, c.Fault, c.Fields) // a hash never fails
		return c.Sum
	}
	sum := record.SumOf(r.alike(c))
	_, _ = r.content.Write(sum[:])
	return sum
}

// understand converts a record to lines, or to a problem.
func (r *Reader) understand(c record.Record) bill.Row {
	cells := &row{Reader: r, fields: c.Fields}
	if r.columns != nil {
		c.Sum = r.columns.Sum(c.Fields)
	}
	alike := r.count(c)
	fault := c.Fault
	if extra := len(c.Fields) - len(r.header); fault == "" && extra != 0 {
		if extra < 0 || slices.ContainsFunc(c.Fields[len(r.header):], func(s string) bool { return s != "" }) {
			fault = fmt.Sprintf("the row is torn: it has %d fields, and the header has %d", len(c.Fields), len(r.header))
		}
	}
	if fault != "" {
		p := &bill.Problem{File: r.file, Line: c.Line, Reason: fault}
		// The last field may be cut off. With too many fields their meaning is unknown.
		if n := len(c.Fields); n > 0 && n <= len(r.header) {
			cells.fields = c.Fields[:n-1]
			p.Amount, p.Currency = cells.amount()
		}
		return bill.Row{Problem: p}
	}
	repeats, also := r.seen.First(c.Sum, alike, c.Line)
	switch {
	case also != "":
		cells.err = fmt.Errorf("the row is the same as line %d of %s", repeats, also)
	case repeats > 0:
		cells.err = fmt.Errorf("the row is the same as line %d", repeats)
	}
	nul := slices.ContainsFunc(c.Fields, func(s string) bool { return strings.IndexByte(s, 0) >= 0 })
	if nul && cells.err == nil {
		cells.err = fmt.Errorf("the row has a NUL byte")
	}
	if cells.err == nil {
		if list := cells.lines(c.Line); cells.err == nil {
			return bill.Row{Lines: list}
		}
	}
	p := &bill.Problem{File: r.file, Line: c.Line, Reason: cells.err.Error(), Repeats: repeats, Also: also}
	if p.Amount, p.Currency = cells.amount(); !nul {
		p.About = cells.about()
	}
	return bill.Row{Problem: p}
}

// about returns what the row charges: texts, which are readable in a row that is whole.
func (c *row) about() *bill.About {
	l := bill.Line{SKU: c.text(fieldSKU), Description: c.text(fieldDescription), Resource: c.text(fieldResource)}
	c.tags(&l)
	return &bill.About{SKU: l.SKU, Description: l.Description, Resource: l.Resource, Job: l.Job, Attempt: l.Attempt,
		TagsUnread: l.TagsUnread}
}

// lines reads every cell. It sets err if one is unreadable.
func (c *row) lines(at int) []bill.Line {
	l := bill.Line{At: at, Provider: c.provider(), Account: c.accountID(), Invoice: c.text(fieldInvoice),
		Service: c.text(fieldService), SKU: c.text(fieldSKU), Description: c.text(fieldDescription),
		Region: c.text(fieldRegion), Resource: c.text(fieldResource), Unit: c.text(fieldUnit),
		Correction: strings.EqualFold(c.text(fieldClass), "correction") || c.text(fieldClass) == "true"}
	l.Currency = c.currencyOf()
	c.names(&l)
	billed := c.number(fieldBilled, bill.Most)
	if !billed.Known {
		c.fail(fieldBilled, fmt.Errorf("the cell is empty"))
	}
	l.Billed = billed.Value
	l.ListCost, l.Effective = c.number(fieldList, bill.Most), c.number(fieldEffective, bill.Most)
	l.Quantity, l.UnitPrice = c.number(fieldQuantity, mostNumber), c.number(fieldUnitPrice, mostNumber)
	c.times(&l)
	c.tags(&l)
	more := c.form.line(c, &l)
	if c.err != nil {
		return nil
	}
	return append([]bill.Line{l}, more...)
}

// currencyOf returns the row's currency, which must equal that of the account's other rows.
func (c *row) currencyOf() money.Currency {
	code := money.Currency(c.text(fieldCurrency))
	if !bill.IsCurrency(code) {
		c.fail(fieldCurrency, fmt.Errorf("%.20q is no currency such as USD", string(code)))
		return ""
	}
	account := c.account()
	usual, is := c.currency[account]
	switch {
	case !is && len(c.currency) < mostAccounts:
		c.currency[account] = code
	case is && usual != code:
		c.fail(fieldCurrency, fmt.Errorf("the row is in %s, and other rows of its account are in %s", code, usual))
	}
	return code
}

// names fails for a row that belongs to no bill, or whose bill has a name that is too long.
func (c *row) names(l *bill.Line) {
	switch {
	case l.Provider == "":
		c.fail(fieldProvider, errors.New("the cell is empty"))
	case len(l.Provider) > bill.MostName:
		c.fail(fieldProvider, fmt.Errorf("%.40q has more than %d bytes", l.Provider, bill.MostName))
	case len(l.Account) > bill.MostName:
		c.fail(fieldAccount, fmt.Errorf("%.40q has more than %d bytes", l.Account, bill.MostName))
	}
}

func (c *row) times(l *bill.Line) {
	var day bool
	if l.Start, day = c.moment(fieldStart); l.Start.IsZero() {
		c.fail(fieldStart, fmt.Errorf("the cell is empty"))
	}
	if l.End, _ = c.moment(fieldEnd); l.End.IsZero() {
		l.End = l.Start
		if day {
			l.End = l.Start.AddDate(0, 0, 1)
		}
	}
	if l.End.Before(l.Start) {
		c.fail(fieldEnd, fmt.Errorf("the charge ends before it begins"))
	}
	l.PeriodStart, _ = c.moment(fieldPeriodStart)
	l.PeriodEnd, _ = c.moment(fieldPeriodEnd)
}
