package reader_test

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
)

// asArray returns a CSV bill as one JSON array.
func asArray(t *testing.T, text string) string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	must.Do(t, err)
	var list []map[string]string
	for _, row := range rows[1:] {
		object := map[string]string{}
		for i, cell := range row {
			object[rows[0][i]] = cell
		}
		list = append(list, object)
	}
	b, err := json.MarshalIndent(list, "", " ")
	must.Do(t, err)
	return string(b)
}

// wide returns a text in UTF-16.
func wide(text string, bigEndian bool) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		pair := []byte{byte(u), byte(u >> 8)}
		if bigEndian {
			slices.Reverse(pair)
		}
		b.Write(pair)
	}
	return b.String()
}

// The same bill is the same whatever a spreadsheet or a database makes of its file.
func TestReader_ReadsTheSameBillInOtherForms(t *testing.T) {
	text := head + strings.Replace(rowOf("1.25", 1), "Machines", "Máquinas 🖥", 1) + rowOf("-2.5", 2) + rowOf("NULL", 3) + rowOf("4", 4)
	for name, form := range map[string]string{
		"as it is":                text,
		"UTF-16 with a mark":      wide("\ufeff"+text, false),
		"UTF-16, big first":       wide("\ufeff"+text, true),
		"UTF-16 without a mark":   wide(text, false),
		"big without a mark":      wide(text, true),
		"a separator's line":      "sep=,\r\n" + strings.ReplaceAll(text, "\n", "\r\n"),
		"a title":                 "Usage report\n\nAccount,acct1\n\n" + text,
		"one array":               asArray(t, text),
		"an array's row a line":   strings.ReplaceAll(strings.ReplaceAll(asArray(t, text), "\n ", ""), "},", "},\n"),
		"null instead of nothing": strings.ReplaceAll(text, ",\n", ",null\n"),
	} {
		s, lines, problems := readAll(t, "x", strings.NewReader(form), bill.Default())
		if s.Kind != "FOCUS 1.0" || s.Totals[0].File.String() != "2.75" || len(lines) != 3 || len(problems) != 1 ||
			!strings.Contains(problems[0].Reason, "BilledCost: the cell is empty") {
			t.Errorf("%s: %s, %v, %d lines, %v", name, s.Kind, s.Totals, len(lines), problems)
		}
	}
}

// A torn array is like a torn file: the rows before the fault are read, and the rest is a problem.
func TestReader_ListsTheRestOfATornArray(t *testing.T) {
	text := asArray(t, head+rowOf("1.25", 1)+rowOf("2.5", 2))
	small := bill.Default()
	small.Record = 1000
	for name, c := range map[string]struct {
		text   string
		limits bill.Limits
		says   string
	}{
		"cut off":    {text[:len(text)-30], bill.Default(), "the JSON array is torn"},
		"no end":     {strings.TrimSuffix(text, "]"), bill.Default(), "the JSON array is torn"},
		"no object":  {strings.TrimSuffix(text, "]") + ", 3]", bill.Default(), "it is no JSON object"},
		"a huge row": {strings.TrimSuffix(text, "]") + `,{"a":"` + strings.Repeat("x", 5000) + `"}]`, small, "longer than any"},
	} {
		_, lines, problems := readAll(t, "x", strings.NewReader(c.text), c.limits)
		if len(lines) == 0 || len(problems) != 1 || !strings.Contains(problems[0].Reason, c.says) {
			t.Errorf("%s: %d lines, %v", name, len(lines), problems)
		}
	}
}

// Thousands parted by a space or an apostrophe have one reading, in any language.
func TestReader_ReadsNumbersOfOtherLanguages(t *testing.T) {
	for text, want := range map[string]string{
		"1\u202f234,56": "1234.56", "-1\u00a0000,1": "-1000.1", "1 234 567,891": "1234567.891", "\u22126,5": "-6.5",
		"1'234,5": "1234.5", "1 23,5": "", "1 234.5,6": "", "1  234,5": "", "12 34": "", "1 234": "1234",
	} {
		bills := strings.ReplaceAll(head, ",", ";") + strings.ReplaceAll(rowOf("0.5", 1), ",", ";") + "\n" +
			strings.Replace(strings.ReplaceAll(rowOf("X", 2), ",", ";"), "X;X", text+";"+text, 1)
		bills = strings.ReplaceAll(bills, "0.5", "0,5")
		_, lines, problems := readAll(t, "x", strings.NewReader(bills), bill.Default())
		switch {
		case want == "" && (len(problems) != 1 || problems[0].Amount.Known):
			t.Errorf("%q: %v", text, lines)
		case want != "" && (len(lines) != 2 || lines[1].Billed.String() != want):
			t.Errorf("%q: %v, %v", text, lines, problems)
		}
	}
}

func TestReader_ReadsTimesAsDatabasesWriteThem(t *testing.T) {
	for _, text := range []string{"2026-10-05T08:00:00+0000", "2026-10-05 08:00", "2026-10-05 08:00:00+00",
		"2026-10-05 08:00:00 +0000 UTC", "2026-10-05T08:00", "5.10.2026 08:00", "2026-10-05T10:00:00+0200"} {
		row := strings.Replace(rowOf("1", 1), "2026-10-05T08:00:00Z", text, 1)
		_, lines, problems := readAll(t, "x", strings.NewReader(head+row), bill.Default())
		if len(lines) != 1 || lines[0].Start.Format("2006-01-02 15:04") != "2026-10-05 08:00" {
			t.Errorf("%q: %v, %v", text, lines, problems)
		}
	}
}

func TestReader_ReadsAzureInGermanAndFrench(t *testing.T) {
	for _, text := range []string{
		"Abrechnungskonto-ID;Abonnement-ID;Datum;Zählerkategorie;Zähler-ID;Zählername;Menge;Kosten;Währung;Gebührentyp\n" +
			"1;s;13.10.2026;Virtual Machines;m1;D2;1,5;1.234,56;EUR;Nutzung\n1;s;13.10.2026;Steuer;m2;D2;1;2,5;EUR;Steuer\n",
		"ID du compte de facturation;ID d'abonnement;Date;Catégorie du compteur;ID du compteur;Nom du compteur;Quantité;" +
			"Coût;Devise;Type de frais\n1;s;13/10/2026;Virtual Machines;m1;D2;1,5;1\u202f234,56;EUR;Utilisation\n" +
			"1;s;13/10/2026;Taxe;m2;D2;1;2,5;EUR;Taxe\n",
	} {
		s, lines, problems := readAll(t, "x", strings.NewReader("\ufeff"+text), bill.Default())
		if s.Kind != "Azure EA costs" || len(lines) != 2 || lines[0].Billed.String() != "1234.56" ||
			lines[0].Category != bill.Compute || lines[1].Category != bill.Tax {
			t.Errorf("%s: %v, %v", s.Kind, lines, problems)
		}
	}
}
