package load_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
	"scrimp/internal/work/serving/load"
)

const ms = time.Millisecond

func read(t *testing.T, text string) load.Trace {
	t.Helper()
	trace, err := load.ReadTrace("r.csv", strings.NewReader(text))
	must.Do(t, err)
	return trace
}

func TestReadTrace_TakesSecondsAndDates(t *testing.T) {
	a := read(t, "time,input_tokens,count,bytes_out\n3600.5,7,2,10\n3601,8,1,1\n\n3605.000000001,0,0,9\n")
	if len(a.At) != 3 || a.At[1] != 0 || a.At[2] != 500*ms || a.Start != 3600500*ms || a.In[2] != 8 || a.Out != nil ||
		a.BytesOut != 21 || !a.Sized || a.Window != 4500*ms+1 {
		t.Errorf("%+v", a)
	}
	// Excel writes a mark and quotes, the Azure traces have names of their own.
	b := read(t, "\ufeff\"TIMESTAMP\",ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n"+
		"2023-11-16T18:15:50.95Z,396,109\r\n")
	if in, out, ok := b.Tokens(); !ok || in != 770 || out != 153 || b.Window.Round(ms) != 4269*ms || b.Longest() != 505 {
		t.Errorf("%+v", b)
	}
	if h := b.Start / time.Hour % 24; h != 18 {
		t.Errorf("the window begins in hour %d", h)
	}
}

func TestReadTrace_SaysWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"":                                    "r.csv: line 1: the file is empty: write the header time",
		"time\n":                              "line 2: no request stands below the header",
		"time,count\n0,0\n":                   "the demand is zero",
		"time\n2\n1\n":                        "line 3: time: \"1\" is before the row above: sort the file by time",
		"time\nsoon\n":                        "line 2: time: \"soon\" is not a time: write seconds",
		"time\nNaN\n":                         "is not a time",
		"time\n-1\n":                          "is not a time",
		"time\n1e3\n":                         "is not a time",
		"time\n1700000000000\n":               "is not a time",
		"time\n0\n2026-03-01T13:00:00Z\n":     "is written in another way",
		"time\n0\n99999999\n":                 "more than 400 days after the first row",
		"time,input_tokens\n0,-1\n":           "input_tokens: \"-1\" is out of range: write a whole number from 0 to 10000000",
		"time,output_tokens\n0,1.5\n":         "output_tokens: \"1.5\" is not a whole number",
		"time,bytes_out\n0,1e9\n":             "bytes_out: \"1e9\" is not a whole number",
		"time,count\n0,99999999999999\n":      "count: \"99999999999999\" is out of range",
		"time,count\n0\n":                     "has 1 field, and the header 2",
		"time,time\n0,0\n":                    "the column time stands twice",
		"time,user\n0,a\n":                    "\"user\" is no column of a trace",
		"count\n1\n":                          "has no column time",
		"hour,eu-west\n0,3\n":                 "\"hour\" begins no trace of requests: write the header",
		"{\"model_type\": \"llama\"}\n":       "begins no trace of requests",
		"time,count\n0,\n":                    "count: \"\" is not a number: write a whole number from 0 to 1000000",
		"\x1f\x8b\x08\x00abc\n":               "r.csv: line 1: the file is compressed with gzip: unpack it first",
		"\x89PNG\r\n\x1a\n\x00\x00":           "begins no trace of requests",
		"time\n" + strings.Repeat("1", 70000): "is longer than 64 KiB",
		"time,count\n" + strings.Repeat("1,1000000\n", 6): "line 7: is beyond 5000000 requests",
	} {
		_, err := load.ReadTrace("r.csv", strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want %q", text, err, says)
		}
	}
}

// Whatever a file holds, what is read is in order and within its bounds.
func FuzzReadTrace(f *testing.F) {
	f.Add("time,input_tokens,output_tokens,bytes_out,count\n0,1,2,3,4\n5.5,1,1,1,1\n")
	f.Add("time\n2026-03-01T13:00:00Z\n2026-03-01T13:00:01+02:00\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := load.ReadTrace("r.csv", strings.NewReader(text))
		if err != nil {
			return
		}
		last := time.Duration(0)
		for _, at := range trace.At {
			if at < last || at > trace.Window {
				t.Fatalf("%v after %v in a window of %v", at, last, trace.Window)
			}
			last = at
		}
		if len(trace.At) == 0 || trace.Window > load.MaxWindow || trace.BytesOut < 0 || trace.Start < 0 {
			t.Fatalf("%+v", trace)
		}
	})
}

// Busiest is the shortest run of hours with nine requests of ten, over midnight too.
func TestBusiest_IsTheShortestPartOfTheDay(t *testing.T) {
	trace := load.Trace{Dated: true}
	for day := range 2 {
		for _, hour := range []int{0, 22, 23} {
			for range 31 {
				trace.At = append(trace.At, time.Duration(24*day+hour)*time.Hour+time.Minute)
			}
		}
		trace.At = append(trace.At, time.Duration(24*day+23)*time.Hour+time.Hour-1)
	}
	trace.Window = 48 * time.Hour
	if h, ok := trace.Busiest(); !ok || h != (load.Hours{From: 22, To: 1}) || !h.Has(0) || h.Has(1) || !h.Has(23) {
		t.Errorf("%v %v", h, ok)
	}
	if h, ok := (load.Trace{At: trace.At, Window: trace.Window}).Busiest(); ok {
		t.Errorf("of seconds that begin at no hour: %v", h)
	}
	trace.Window = time.Hour
	if h, ok := trace.Busiest(); ok {
		t.Errorf("of an hour: %v", h)
	}
	for text, ok := range map[string]bool{"8-18": true, "22-6": true, "18-24": true, "8-8": false, "0-24": false, "8": false,
		"-1-5": false, "8-25": false, "": false} {
		if h, err := load.ParseHours(text); (err == nil) != ok {
			t.Errorf("%q: %v, %v", text, h, err)
		}
	}
}
