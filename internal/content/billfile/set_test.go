package billfile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
)

const head = "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ServiceName,ProviderName,ResourceId,BillingAccountId\n"

// billOf is a FOCUS bill with the rows from one number up to another, which cost as much in cents.
func billOf(from, to int) string {
	text := head
	for n := from; n < to; n++ {
		text += fmt.Sprintf("0.%02d,USD,2026-10-02T00:00:00Z,2026-10-02T10:00:00Z,Usage,EC2,AWS,i-%d,a\n", n, n)
	}
	return text
}

// moved puts the last column of a table first.
func moved(table string) (text string) {
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ',')
		text += line[at+1:] + "," + line[:at] + "\n"
	}
	return text
}

// jsonLines is the table as JSON lines, with numbers as numbers and without empty cells.
func jsonLines(t *testing.T, table string) (text string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(table), "\n")
	names := strings.Split(lines[0], ",")
	for _, line := range lines[1:] {
		object := map[string]any{}
		for i, cell := range strings.Split(line, ",") {
			if object[names[i]] = cell; names[i] == "BilledCost" {
				object[names[i]] = json.Number(cell)
			}
		}
		b, err := json.Marshal(object)
		must.Do(t, err)
		text += string(b) + "\n"
	}
	return text
}

// edited makes replacements in the rows of a table.
func edited(table string, pairs ...string) string {
	header, rows, _ := strings.Cut(table, "\n")
	return header + "\n" + strings.NewReplacer(pairs...).Replace(rows)
}

// set adds files with these texts, and returns it with the sum of the lines that it sends.
func set(t *testing.T, texts ...string) (s Set, total string) {
	t.Helper()
	dir := t.TempDir()
	for n, text := range texts {
		file := File{Name: fmt.Sprintf("f%d", n), Path: filepath.Join(dir, fmt.Sprint(n))}
		must.Do(t, os.WriteFile(file.Path, []byte(text), 0o600))
		_, err := s.Add(t.Context(), file, "scrimp bill show")
		must.Do(t, err)
	}
	var sent bytes.Buffer
	must.Do(t, Pack(t.Context(), &sent, s.Files))
	z, err := gzip.NewReader(&sent)
	must.Do(t, err)
	sum := decimal.Decimal{}
	for d := json.NewDecoder(z); d.More(); {
		var row bill.Row
		must.Do(t, d.Decode(&row))
		for _, l := range row.Lines {
			sum = sum.Add(l.Billed)
		}
	}
	return s, sum.String()
}

// A copy of a file counts once, whatever its line ends, its byte-order mark, its packing and its encoding. A row that two
// files have is a line once, and listed with both places the second time. Two rows of one file that say the same in
// other words are two charges.
func TestSet_CountsEachRowOnce(t *testing.T) {
	whole := billOf(1, 10)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write([]byte(whole))
	must.Do(t, err)
	must.Do(t, z.Close())
	tagged := strings.ReplaceAll(edited(whole, ",a\n", `,a,"{""Team"": ""a"", ""N"": 1.0}"`+"\n"), "AccountId\n", "AccountId,Tags\n")
	for name, c := range map[string]struct {
		texts  []string
		files  int
		total  string
		reason string
	}{
		"parts":                 {[]string{billOf(1, 4), billOf(4, 10)}, 2, "0.45", ""},
		"the same":              {[]string{whole, whole}, 1, "0.45", ""},
		"gzip":                  {[]string{whole, packed.String()}, 1, "0.45", ""},
		"CRLF and mark":         {[]string{whole, "\ufeff" + strings.ReplaceAll(whole, "\n", "\r\n")}, 1, "0.45", ""},
		"semicolons":            {[]string{whole, strings.ReplaceAll(whole, ",", ";")}, 1, "0.45", ""},
		"columns moved":         {[]string{whole, moved(whole)}, 1, "0.45", ""},
		"JSON lines":            {[]string{whole, jsonLines(t, whole)}, 1, "0.45", ""},
		"numbers":               {[]string{whole, edited(whole, ",USD", "000,USD")}, 1, "0.45", ""},
		"exponents":             {[]string{whole, edited(whole, "0.0", "", ",USD", "E-2,USD")}, 1, "0.45", ""},
		"times":                 {[]string{whole, edited(whole, "-02T00:00:00Z", "-02", "T10:00:00Z", " 12:00:00+02:00")}, 1, "0.45", ""},
		"tags":                  {[]string{tagged, edited(tagged, `"": ""`, `"":""`, `1.0`, `""1""`)}, 1, "0.45", ""},
		"cost":                  {[]string{whole, edited(whole, ",USD", "1,USD")}, 2, "0.909", ""},
		"alike in a file":       {[]string{whole + strings.TrimPrefix(edited(whole, ",USD", "0,USD"), head)}, 1, "0.9", ""},
		"names":                 {[]string{whole, edited(whole, ",a\n", ",0123\n"), edited(whole, ",a\n", ",123\n")}, 3, "1.35", ""},
		"overlap in JSON lines": {[]string{billOf(1, 7), jsonLines(t, billOf(5, 10))}, 2, "0.45", "the row is the same as line 6 of f0"},
		"overlap":               {[]string{billOf(1, 7), billOf(5, 10)}, 2, "0.45", "the row is the same as line 6 of f0"},
		"contained":             {[]string{whole, billOf(3, 5)}, 2, "0.45", "the row is the same as line 4 of f0"},
		"torn twice":            {[]string{whole[:len(whole)-20], whole[:len(whole)-21]}, 2, "0.36", "the row is the same as line 2 of f0"},
	} {
		s, total := set(t, c.texts...)
		reason := ""
		if s.First != nil {
			reason = s.First.Reason
		}
		if len(s.Files) != c.files || total != c.total || reason != c.reason || (s.Overlap > 0) != (reason != "") || s.Unread < s.Overlap {
			t.Errorf("%s: %d files, %s in all, %d of %d unread rows twice: %q", name, len(s.Files), total, s.Overlap, s.Unread, reason)
		}
	}
}
