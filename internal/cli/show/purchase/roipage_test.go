package purchase_test

import (
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"scrimp/internal/cli/show/purchase"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/browser"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/work/own"
)

func pageOf(t *testing.T, file string) string {
	t.Helper()
	v, err := own.ParseROI("a.yaml", []byte(file))
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	b, err := purchase.ROIPage(v)
	must.Do(t, err)
	return string(b)
}

var (
	card    = regexp.MustCompile(`<div><b>([^<]*)</b><span>([^<]*)</span></div>`)
	ofMonth = regexp.MustCompile(`<tr><td>(\d+)<td class="n">([^<]*)</tr>`)
	ofValue = regexp.MustCompile(`<tr><td class="what">(\w+)<td>(\d+) to (\d+)<td class="n">([^<]*)<td class="n">([^<]*)<td>`)
	line    = regexp.MustCompile(`d="(M[^"]*)" class="line spent"`)
)

func dollars(cents int) string { return money.Format(money.Picos(int64(cents)*1e10), money.USD, 2) }

// Every figure of the page is that of a plain count in cents.
func TestROIPage_FiguresAreThoseOfAPlainCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for range 60 {
		months, count, price, after := 1+rng.IntN(60), 1+rng.IntN(9), 1+rng.IntN(90_000), rng.IntN(200_000)
		once, given, worth := rng.IntN(2_000_000), rng.IntN(5), rng.IntN(30_000)
		low, high := rng.IntN(count+1), count+rng.IntN(5)
		page := pageOf(t, fmt.Sprintf("name: n\nmonths: %d\nvalues: {machines: {value: %d, low: %d, high: %d}}\n"+
			"before: [{what: a, monthly: [machines, $%.2f]}]\nafter: [{what: b, monthly: $%.2f}]\n"+
			"investment: [{what: c, once: $%.2f}]\nquality: {metric: points, given_up: %d, worth: $%.2f}\n",
			months, count, low, high, float64(price)/100, float64(after)/100, float64(once)/100, given, float64(worth)/100))
		gain := func(machines int) int { return months*(machines*price-after-given*worth) - once }
		net := count*price - after - given*worth
		payback := "never"
		if net > 0 {
			payback = fmt.Sprintf("%.1f months", float64(once)/float64(net))
		}
		want := map[string]string{"saved a month": dollars(count*price - after), "net a month": dollars(net),
			"value of the quality given up, a month": dollars(given * worth), "investment, once": dollars(once), "payback": payback}
		for _, c := range card.FindAllStringSubmatch(page, -1) {
			label := html.UnescapeString(c[2])
			if w, known := want[label]; known && !strings.HasPrefix(c[1], w) {
				t.Errorf("%s: %s, plain count %s", label, c[1], w)
			} else if strings.HasPrefix(label, "gain in ") && c[1] != dollars(gain(count)) {
				t.Errorf("gain %s, plain count %s", c[1], dollars(gain(count)))
			}
			delete(want, label)
		}
		if len(want) > 0 {
			t.Fatalf("no figures %v", want)
		}
		rows := ofMonth.FindAllStringSubmatch(page, -1)
		if len(rows) != months+1 {
			t.Fatalf("%d rows for %d months", len(rows), months)
		}
		for m, row := range rows {
			if row[1] != fmt.Sprint(m) || row[2] != dollars(m*net-once) {
				t.Errorf("month %s: %s, plain count %s", row[1], row[2], dollars(m*net-once))
			}
		}
		if path := line.FindStringSubmatch(page); path == nil || strings.Count(path[1], "L") != months {
			t.Errorf("the drawing has not %d months", months)
		}
		if swing := ofValue.FindStringSubmatch(page); low < high && (swing == nil || swing[2] != fmt.Sprint(low) ||
			swing[3] != fmt.Sprint(high) || swing[4] != dollars(gain(low)) || swing[5] != dollars(gain(high))) {
			t.Errorf("sensitivity %v, plain count %s to %s", swing, dollars(gain(low)), dollars(gain(high)))
		}
	}
}

// Quality that the file does not give is unknown, and a change that saves nothing never pays.
func TestROIPage_SaysUnknownAndNever(t *testing.T) {
	page := pageOf(t, "name: n\nbefore: [{what: a, monthly: 10}]\nafter: [{what: a, monthly: 30}]\ninvestment: []\n")
	for _, says := range []string{"<b>unknown</b><span>value of the quality", "<b>never: each month costs more",
		"All figures hold only if none is", "It does not pay.", "Unknown: no value has a range"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q", says)
		}
	}
}

const hostile = `'\"></title></style><script>document.title='owned'</script><img src=x onerror=document.title='owned'>`

func hostilePage(t *testing.T) string {
	return pageOf(t, strings.ReplaceAll(`name: "H"
values: {"v H": {value: 4, low: 1, high: 9, unit: "H", source: "H"}}
before: [{what: "H", monthly: ["v H", 30]}]
after: []
investment: [{what: "H", once: 7}]
quality: {metric: "H", given_up: 1, worth: 2, source: "H"}
`, "H", hostile))
}

func TestROIPage_ShowsHostileTextAsText(t *testing.T) {
	page := hostilePage(t)
	for _, act := range []string{"<script", "<img"} {
		if strings.Contains(page, act) {
			t.Errorf("the page contains %s", act)
		}
	}
	if n := strings.Count(page, "owned"); n < 10 {
		t.Errorf("only %d texts are in the page", n)
	}
}

// A real browser shows the page without errors, requests nothing, and is not wider than a phone.
func TestROIPage_InChromium(t *testing.T) {
	lane.Component(t, "browser")
	file := filepath.Join(t.TempDir(), "case.html")
	must.Do(t, os.WriteFile(file, []byte(hostilePage(t)), 0o600))
	b := browser.Start(t)
	b.Size(360, 740, false)
	b.Go("file://" + file)
	var got struct {
		Title    string
		Over     bool
		Requests int
		Drawn    float64
	}
	b.Eval(`({Title: document.title, Over: document.documentElement.scrollWidth > innerWidth,
		Requests: performance.getEntriesByType("resource").length,
		Drawn: document.querySelector("path.line.spent").getTotalLength()})`, &got)
	if !strings.HasPrefix(got.Title, "Business case: ") || got.Over || got.Requests != 0 || got.Drawn < 100 {
		t.Errorf("%+v", got)
	}
	if wrong := b.Errors(); len(wrong) > 0 {
		t.Errorf("%v", wrong)
	}
}
