package reader_test

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/bill/reader"
)

// readAll reads a whole bill.
func readAll(t *testing.T, name string, in io.Reader, limits bill.Limits) (s bill.Summary, lines []bill.Line, problems []bill.Problem) {
	t.Helper()
	r, err := reader.New(name, in, limits)
	must.Do(t, err)
	s = bill.Summary{File: name, Kind: r.Kind(), Lacks: r.Lacks()}
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			s.Finish()
			return s, lines, problems
		}
		must.Do(t, err)
		s.Add(row)
		lines = append(lines, row.Lines...)
		if row.Problem != nil {
			problems = append(problems, *row.Problem)
		}
	}
}

// plain returns the text of a sample.
func plain(t testing.TB, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	must.Do(t, err)
	if strings.HasSuffix(file, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		must.Do(t, err)
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return strings.TrimPrefix(string(b), "\ufeff")
}

// costColumns lists the columns to sum, by their names in the header.
var costColumns = []string{"line_item_unblended_cost", "lineItem/UnblendedCost", "BilledCost", "CostInBillingCurrency",
	"Kosten in Abrechnungswährung (CostInBillingCurrency)", "PreTaxCost", "cost/myCost", "cost"}

// plainTotal sums the cost column of a sample without the package: with encoding/csv, encoding/json and fractions.
func plainTotal(t *testing.T, file string) *big.Rat {
	t.Helper()
	text, sum := plain(t, file), new(big.Rat)
	add := func(s string, comma bool) {
		if comma {
			s = strings.ReplaceAll(strings.ReplaceAll(s, ".", ""), ",", ".")
		}
		v, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("%s: %q", file, s)
		}
		sum.Add(sum, v)
	}
	credits := func(s string) {
		var list []struct{ Amount json.Number }
		if err := json.Unmarshal([]byte(s), &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range list {
			add(c.Amount.String(), false)
		}
	}
	if strings.HasSuffix(file, ".jsonl") {
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			var row struct {
				Cost    json.Number
				Credits json.RawMessage
			}
			must.Do(t, json.Unmarshal([]byte(line), &row))
			add(row.Cost.String(), false)
			credits(string(row.Credits))
		}
		return sum
	}
	in := csv.NewReader(strings.NewReader(text))
	german := strings.Contains(file, "german")
	if german {
		in.Comma = ';'
	}
	rows, err := in.ReadAll()
	must.Do(t, err)
	for _, want := range costColumns {
		for i, name := range rows[0] {
			if name != want {
				continue
			}
			for _, row := range rows[1:] {
				add(row[i], german || strings.Contains(file, "payg"))
				for k, c := range rows[0] {
					if c == "credits" {
						credits(row[k])
					}
				}
			}
			return sum
		}
	}
	t.Fatalf("%s has no column of costs", file)
	return nil
}

func samples(t *testing.T) (list []string) {
	t.Helper()
	for _, glob := range []string{"*.csv", "*.gz", "*.jsonl"} {
		found, _ := filepath.Glob(filepath.Join("testdata", glob))
		for _, file := range found {
			if filepath.Base(file) != "faults.csv" {
				list = append(list, file)
			}
		}
	}
	if len(list) < 15 {
		t.Fatalf("%d samples", len(list))
	}
	return list
}

// Each kind is recognised, each row is read, and the sum equals that of the file's column to the last digit.
func TestBills_AreReadToTheLastDigit(t *testing.T) {
	for _, file := range samples(t) {
		in, err := os.Open(file)
		must.Do(t, err)
		name := filepath.Base(file)
		s, lines, problems := readAll(t, name, in, bill.Default())
		_ = in.Close()
		if len(problems) > 0 || len(s.Totals) != 1 {
			t.Errorf("%s: %v, %d totals", name, problems, len(s.Totals))
			continue
		}
		want, got := plainTotal(t, file), new(big.Rat)
		for _, l := range lines {
			v, _ := new(big.Rat).SetString(l.Billed.String())
			got.Add(got, v)
		}
		total, _ := new(big.Rat).SetString(s.Totals[0].File.String())
		if got.Cmp(want) != 0 || total.Cmp(want) != 0 {
			t.Errorf("%s: the lines are %s, the summary says %s, the file's column is %s", name, got.FloatString(30),
				s.Totals[0].File, want.FloatString(30))
		}
		golden.JSON(t, "golden/"+name+".json", s)
		var b strings.Builder
		for _, l := range lines {
			fmt.Fprintf(&b, "%d %s | %s | %s | %s | %s | job %s attempt %s | %s to %s | %s × %s %s | billed %s list %s effective %s %s | invoice %s | %v\n",
				l.At, l.Category, l.Provider, l.Service, l.SKU, l.Region, l.Job, l.Attempt, l.Start.Format("2006-01-02T15"),
				l.End.Format("2006-01-02T15"), number(l.Quantity), number(l.UnitPrice), l.Unit, l.Billed, number(l.ListCost),
				number(l.Effective), l.Currency, l.Invoice, l.Correction)
		}
		golden.Check(t, "golden/"+name+".txt", b.String())
	}
}

func number(n bill.Number) string {
	if !n.Known {
		return "unknown"
	}
	return n.Value.String()
}

// Every planted fault is reported with its line, no other row is, and the sum misses nothing.
func TestFaults_AreEachNamed(t *testing.T) {
	text := plain(t, "testdata/faults.csv")
	s, lines, problems := readAll(t, "faults.csv", strings.NewReader(text), bill.Default())
	want := []struct {
		line           int
		reason, amount string
	}{
		{4, "the row is the same as line 2", "29.5012345678"},
		{5, "the row is torn: it has", "unknown"},
		{6, `line_item_unblended_cost: "1e300" is beyond 1000000000000`, "1" + strings.Repeat("0", 300)},
		{7, `"0,0055" is not written as the other numbers of the file are (decimal point)`, "0.0055"},
		{8, "line_item_currency_code: the row is in EUR, and other rows of its account are in USD", "0.005"},
		{9, `line_item_currency_code: "Dollar" is no currency`, "0.005"},
		{10, `line_item_unblended_cost: "=1+1" is not a number`, "unknown"},
		{11, "the row has a NUL byte", "0.005"},
		{12, "line_item_unblended_cost: the cell is empty", "unknown"},
		{13, `line_item_usage_start_date: "yesterday" is not a time`, "0.005"},
		{15, "the row is torn: a quote does not end", "unknown"},
		{18, `line_item_usage_amount: "abc" is not a number`, "0.005"},
		{19, "line_item_usage_end_date: the charge ends before it begins", "0.005"},
		{20, `line_item_unblended_cost: "NaN" is not a number`, "unknown"},
		{23, "the row is torn: it has", "unknown"},
	}
	if len(problems) != len(want) {
		t.Fatalf("%d problems: %v", len(problems), problems)
	}
	sum := new(big.Rat)
	for i, p := range problems {
		if p.Line != want[i].line || !strings.Contains(p.Reason, want[i].reason) || number(p.Amount) != want[i].amount ||
			p.File != "faults.csv" {
			t.Errorf("line %d: %s, %s; want line %d: %s, %s", p.Line, p.Reason, number(p.Amount), want[i].line, want[i].reason,
				want[i].amount)
		}
		if p.Amount.Known {
			v, _ := new(big.Rat).SetString(p.Amount.Value.String())
			sum.Add(sum, v)
		}
	}
	if len(lines) != 7 || s.Rows != len(lines)+len(problems) || s.Problems != len(problems) || s.Unknown != 6 {
		t.Errorf("%d lines, %+v", len(lines), s)
	}
	for _, l := range lines {
		v, _ := new(big.Rat).SetString(l.Billed.String())
		sum.Add(sum, v)
	}
	// The same, directly: each line of the file by itself, with only the numbers that are easy to parse.
	again := new(big.Rat)
	column := -1
	for i, name := range strings.Split(strings.Split(text, "\n")[0], ",") {
		if name == "line_item_unblended_cost" {
			column = i
		}
	}
	for _, line := range strings.Split(text, "\n")[1:] {
		row, err := csv.NewReader(strings.NewReader(line)).Read()
		if err != nil || len(row) <= column+1 {
			continue
		}
		if v, ok := new(big.Rat).SetString(strings.ReplaceAll(row[column], ",", ".")); ok {
			again.Add(again, v)
		}
	}
	total := new(big.Rat)
	for _, part := range s.Totals {
		v, _ := new(big.Rat).SetString(part.File.String())
		total.Add(total, v)
	}
	if sum.Cmp(again) != 0 || total.Cmp(again) != 0 {
		t.Errorf("the rows are %s, the totals %s, the file %s", sum.FloatString(20), total.FloatString(20), again.FloatString(20))
	}
}

const head = "BilledCost,EffectiveCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceCategory,ServiceName,Tags\n"

func rowOf(cost string, i int) string {
	return fmt.Sprintf("%s,%s,USD,2026-10-05T08:00:00Z,2026-10-05T09:00:00Z,Usage,Compute,Machines %d,\n", cost, cost, i)
}

func TestNew_RefusesOtherFilesWithTheReason(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte("a,b\n1,2\n"))
	_ = z.Close()
	cur := plain(t, "testdata/aws-cur-2.csv")
	for name, c := range map[string]struct{ text, says string }{
		"nothing":        {"", "the file is empty"},
		"blanks":         {" \n\n ", "the file is empty"},
		"a mark":         {"\ufeff", "the file is empty"},
		"other columns":  {"a,b,c\n1,2,3\n", "the file is no bill that scrimp reads: it has not the columns of AWS CUR 2.0"},
		"packed":         {zipped.String(), "the file is no bill"},
		"a ZIP":          {"PK\x03\x04abc", "ZIP archive: unpack it"},
		"UTF-16":         {"\xff\xfeB\x00i\x00", "the file is no bill"},
		"an array":       {"[{\"a\":1}]", "the file is no bill"},
		"no line feed":   {strings.ReplaceAll(head+rowOf("1", 1), "\n", "\r"), "save it with LF or CRLF"},
		"other JSON":     {"{\"a\":1}\n", "the file is no bill"},
		"a program":      {"\x7fELF\x02\x01\x00\x00\x00\n", "the file is no bill that scrimp reads: it is not text: give the CSV, JSON lines or Parquet file of " + reader.Kinds},
		"an image":       {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "the file is no bill that scrimp reads: it is not text"},
		"Parquet":        {"PAR1....", "the file is Parquet"},
		"a gzip cut off": {"\x1f\x8b", "unpack: "},
		"no cost": {strings.Replace(cur, "line_item_unblended_cost", "cost_of_line", 1),
			"it looks like AWS CUR 2.0, but has no column line_item_unblended_cost: export it with this column"},
		"no currency": {strings.Replace(head, "BillingCurrency", "Money", 1), "FOCUS 1.0, but has no column BillingCurrency"},
		"cost twice":  {strings.Replace(head, "EffectiveCost", "billed_cost", 1), "the column BilledCost is there twice"},
	} {
		if _, err := reader.New("x.csv", strings.NewReader(c.text), bill.Default()); err == nil || !strings.HasPrefix(err.Error(), "x.csv: ") ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %s", name, err, c.says)
		}
	}
}

// A file of a few kilobytes may unpack to terabytes.
func TestReader_CutsOffBombs(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, head+rowOf("1.5", 1))
	zeros := make([]byte, 1<<16)
	for range 64 {
		_, _ = z.Write(zeros)
	}
	_ = z.Close()
	limits := bill.Default()
	limits.Unpacked = 1 << 20
	s, lines, problems := readAll(t, "bomb.csv.gz", &packed, limits)
	if len(lines) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Reason, "it unpacks to far more than a bill does") ||
		len(s.Totals) != 1 || s.Totals[0].Billed.String() != "1.5" || s.Unknown != 1 {
		t.Errorf("%v, %v, %+v", lines, problems, s.Totals)
	}
}

// Of a truncated gzip file the readable part is returned, with an error.
func TestReader_ReportsTruncatedGzipFiles(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = io.WriteString(z, head+rowOf("1.5", 1))
	_ = z.Flush()
	_, _ = io.WriteString(z, rowOf("2.5", 2))
	_ = z.Close()
	_, lines, problems := readAll(t, "cut.csv.gz", bytes.NewReader(packed.Bytes()[:packed.Len()-12]), bill.Default())
	if len(lines) == 0 || len(problems) != 1 || !strings.Contains(problems[0].Reason, "cannot be read from here on") {
		t.Errorf("%v, %v", lines, problems)
	}
}

// endless is a bill without an end that counts how much of it was read.
type endless struct {
	text string
	row  func(i int) string
	n, i int
	most int
}

func (e *endless) Read(p []byte) (int, error) {
	for e.text == "" {
		if e.n > e.most {
			return 0, io.EOF
		}
		e.i++
		e.text = e.row(e.i)
	}
	n := copy(p, e.text)
	e.text, e.n = e.text[n:], e.n+n
	return n, nil
}

// The reader's memory does not grow with the file, whatever the file contains.
func TestReader_NeedsLittleMemoryForLargeFiles(t *testing.T) {
	limits := bill.Default()
	limits.Repeated = 10_000
	for name, row := range map[string]func(i int) string{
		"rows":           func(i int) string { return rowOf("0.000000001", i) },
		"one long line":  func(int) string { return strings.Repeat("x", 1<<16) },
		"an open quote":  func(i int) string { return `"` + rowOf("1", i) + rowOf("2", i) },
		"only commas":    func(i int) string { return strings.Repeat(",", 500) + "\n" },
		"many quotes":    func(i int) string { return `"""` + "\n" },
		"doubled quotes": func(int) string { return `"` + strings.Repeat(`""`, 1<<18) + "\"\n" },
		"open and never": func(i int) string { return strings.Repeat("a", 70) + map[bool]string{true: `"`}[i == 1] + "\n" },
	} {
		in := &endless{text: head, row: row, most: 4 << 20}
		r, err := reader.New(name, in, limits)
		must.Do(t, err)
		s := bill.Summary{}
		for {
			row, err := r.Next()
			if err != nil {
				break
			}
			s.Add(row)
		}
		s.Finish()
		if in.n < in.most {
			t.Errorf("%s: read %d bytes", name, in.n)
		}
		if held := r.Held(); held > 2<<20 {
			t.Errorf("%s: the reader holds %d bytes", name, held)
		}
		if name == "rows" && (s.Problems > 0 || s.Lines != in.i || len(s.Totals[0].Services) > 2001) {
			t.Errorf("%s: %d problems, %d lines of %d", name, s.Problems, s.Lines, in.i)
		}
	}
}

// Numbers in both notations are read, and ambiguous ones are not guessed.
func TestNumbers_AreNeverGuessed(t *testing.T) {
	for _, c := range []struct{ cells, want string }{
		{"1.5 2.25", "1.5 2.25"},
		{"1,5 2,25", "1.5 2.25"},
		{"1.234,56 7,5", "1234.56 7.5"},
		{"1,234.56 7.5", "1234.56 7.5"},
		{"1,234 0.5", "? 0.5"}, // 1.234 or 1234
		{"1.234 0,5", "? 0.5"}, // 1.234 or 1234
		{"1.234 0.5", "1.234 0.5"},
		{"1,234 2,345", "? ?"},
		{"12 0,5", "12 0.5"},
		{"1,5e-3 2,5", "0.0015 2.5"},
		{"1.2.3 0.5", "? 0.5"},
		{"1,23,4 0.5", "? 0.5"},
		{"0.5 0.25 0,75", "0.5 0.25 0.75!"},
		{"- 0.5", "? 0.5"},
		{"0x10 0.5", "? 0.5"},
		{"1_000 0.5", "? 0.5"},
		{"$5 0.5", "? 0.5"},
		{"(5.00) 0.5", "? 0.5"},
		{"5- 0.5", "? 0.5"},
	} {
		text := head
		for i, cell := range strings.Fields(c.cells) {
			text += strings.ReplaceAll(rowOf("@", i), "@", `"`+cell+`"`)
		}
		r, err := reader.New("x", strings.NewReader(text), bill.Default())
		must.Do(t, err)
		var got []string
		for row, err := r.Next(); err == nil; row, err = r.Next() {
			switch {
			case row.Problem == nil:
				got = append(got, row.Lines[0].Billed.String())
			case row.Problem.Amount.Known:
				got = append(got, row.Problem.Amount.Value.String()+"!")
			default:
				got = append(got, "?")
			}
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: got %s, want %s", c.cells, g, c.want)
		}
	}
}

// A row with an unclosed quote affects no other row.
func TestTornRow_AffectsNoOtherRow(t *testing.T) {
	text := head
	for i := range 50 {
		row := rowOf("1", i)
		if i == 20 {
			row = strings.Replace(row, "Machines", `"Machines`, 1)
		}
		if i == 30 {
			row = strings.Replace(row, "Machines 30,", "\"Machines\n 30\",\"a \"\"b\"\" c\"", 1) // two lines of text are valid
		}
		text += row
	}
	_, lines, problems := readAll(t, "x", strings.NewReader(text), bill.Default())
	if len(lines) != 49 || len(problems) != 1 || problems[0].Line != 22 || problems[0].Amount.Value.String() != "1" {
		t.Errorf("%d lines, %+v", len(lines), problems)
	}
}

// Accounts may have different currencies, and no total mixes two.
func TestCurrencies_AreNeverAddedUp(t *testing.T) {
	text := strings.Replace(head, "Tags", "BillingAccountId", 1)
	for i, c := range []string{"USD,a", "EUR,b", "USD,a", "EUR,b", "USD,b", "EUR,b"} {
		code, account, _ := strings.Cut(c, ",")
		text += strings.Replace(strings.TrimSuffix(rowOf("1.25", i), "\n"), "USD", code, 1) + account + "\n"
	}
	s, _, problems := readAll(t, "x", strings.NewReader(text), bill.Default())
	if len(problems) != 1 || problems[0].Line != 6 || len(s.Totals) != 2 || s.Totals[0].Billed.String() != "3.75" ||
		s.Totals[1].Billed.String() != "2.5" || s.Totals[1].Unread.String() != "1.25" {
		t.Errorf("%+v, %+v", problems, s.Totals)
	}
}

// A bill that scrimp has exported as FOCUS can be read, with its jobs and attempts.
func TestOwnFOCUS_IsRead(t *testing.T) {
	for _, v := range []focus.Version{focus.V12, focus.V13, focus.V14} {
		w, begin := focus.NewWriter(v), time.Date(2026, 10, 30, 22, 0, 0, 0, time.UTC)
		var b strings.Builder
		out := csv.NewWriter(&b)
		_ = out.Write(w.Header())
		want := money.Amount{}
		for i := range 100 {
			rate := money.Rate(1 + int64(i)*7_777_777_777_777)
			c := charge.Charge{Begin: begin, End: begin.Add(time.Hour), Timed: true, Time: time.Hour, Price: ledger.PriceOf(rate, true),
				Amount: rate.Until(time.Hour), Currency: "USD", Category: ledger.Compute, Use: ledger.Useful, Phase: ledger.Accrued,
				Owner: ledger.Owner{Job: fmt.Sprint("j", i), Attempt: "a\n1", Team: "=1+1"}}
			want = want.Add(c.Amount)
			_ = out.Write(w.Row(nil, c))
		}
		out.Flush()
		s, lines, problems := readAll(t, "x", strings.NewReader(b.String()), bill.Default())
		if len(problems) > 0 || len(lines) != 100 || s.Kind != "scrimp's FOCUS "+v.String() || s.Totals[0].Job.Lines != 100 ||
			s.Totals[0].Attempt.Lines != 100 || s.Totals[0].File.Cmp(decimal.OfAmount(want)) != 0 || lines[7].Category != bill.Compute {
			t.Errorf("%s: %+v, %v", v, s, problems)
		}
	}
}

// Whatever the file, each of its rows is a line or a problem, and reading ends.
func FuzzNew(f *testing.F) {
	for _, file := range []string{"faults.csv", "gcp.jsonl", "gcp.csv", "azure-mca-german.csv", "aws-cur.csv.gz", "focus-1.0.csv"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		must.Do(f, err)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := reader.New("x", bytes.NewReader(b), bill.Default())
		if err != nil {
			return
		}
		s := bill.Summary{}
		for row, err := r.Next(); err == nil; row, err = r.Next() {
			if (row.Problem == nil) == (len(row.Lines) == 0) {
				t.Fatalf("%+v", row)
			}
			s.Add(row)
		}
		s.Finish()
		for _, total := range s.Totals {
			if total.File.Cmp(total.Billed.Add(total.Unread)) != 0 {
				t.Fatalf("%+v", total)
			}
		}
	})
}
