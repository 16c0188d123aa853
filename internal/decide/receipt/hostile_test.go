package receipt

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// hostile is a text that acts if a page embeds it unescaped.
const hostile = `'"></title></style></svg><script>document.title='owned'</script>` +
	`<img src=x onerror="document.title='owned'"><a href="javascript:1">`

// fill sets every text in v to the hostile one.
func fill(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
		return 1
	case reflect.Pointer:
		if !v.IsNil() {
			return fill(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				n += fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return 0
		}
		for i := range v.Len() {
			n += fill(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			n += fill(e)
			v.SetMapIndex(k, e)
			if k.Kind() == reflect.String {
				v.SetMapIndex(reflect.ValueOf(hostile).Convert(k.Type()), e)
			}
		}
	default:
	}
	return n
}

// hostilePages returns receipts as pages with every text hostile, and the number of texts in each.
func hostilePages(t *testing.T) (pages map[string][]byte, texts map[string]int) {
	t.Helper()
	pages, texts = map[string][]byte{}, map[string]int{}
	for name, r := range map[string]Receipt{"sample": sample(), "large": large()} {
		currency := r.Currency
		texts[name] = fill(reflect.ValueOf(&r).Elem())
		r.Currency = currency // a code of three letters, checked on input
		page, err := r.HTML()
		must.Do(t, err)
		pages[name] = page
	}
	return pages, texts
}

// A submitter chooses the names of the job, its metrics, offers and outputs; the page of its receipt shows them as
// text.
func TestHTML_ShowsHostileTextAsText(t *testing.T) {
	t.Parallel()
	pages, texts := hostilePages(t)
	for name, page := range pages {
		for _, act := range []string{"<script", "<img", "<a ", "onerror=\"", "javascript:1\""} {
			if strings.Contains(string(page), act) {
				t.Errorf("%s: of %d texts one stands in the page as %s", name, texts[name], act)
			}
		}
		if strings.Count(string(page), "owned") < 10 {
			t.Errorf("%s: the texts are not in the page", name)
		}
	}
}

// A real browser runs none of them either.
func TestHTML_HostileTextIsInertInChromium(t *testing.T) {
	lane.Component(t, "host")
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed")
	}
	pages, _ := hostilePages(t)
	for name, page := range pages {
		file := filepath.Join(t.TempDir(), "receipt.html")
		must.Do(t, os.WriteFile(file, page, 0o600))
		dom, err := exec.CommandContext(t.Context(), chromium, "--headless", "--no-sandbox", "--disable-gpu",
			"--user-data-dir="+t.TempDir(), "--dump-dom", "file://"+file).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text := string(dom); strings.Contains(text, "<title>owned") || strings.Contains(text, "<script") ||
			strings.Contains(text, "<img") || !strings.Contains(text, "<h1>Receipt for") {
			t.Errorf("%s: in the browser a text of the receipt acts", name)
		}
	}
}

func TestText_HostileTextIsInertInATerminal(t *testing.T) {
	t.Parallel()
	r := large()
	r.Reason, r.LossName = "x\x1b]0;owned\a", "loss\x1b[2J\u202e"
	for i := range r.Tries {
		r.Tries[i].End, r.Tries[i].Offer = "\x1b[31m", "o\u009b31m"
	}
	if text := r.Text(80); strings.ContainsAny(text, "\x1b\a\u009b\u202e") || !strings.Contains(text, "owned") {
		t.Errorf("%q", text)
	}
}
