package sample

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
)

func TestParse_TakesPartsWithinBounds(t *testing.T) {
	for text, want := range map[string]string{"1%": "0.01", "0.01": "0.01", "50%": "0.5", "0.01%": "0.0001", "12.5 %": "0.125"} {
		if p, err := Parse(text); err != nil || p.Fraction() != want {
			t.Errorf("%s is %s, %v, want %s", text, p.Fraction(), err, want)
		}
	}
	for _, text := range []string{"", "0", "-1%", "51%", "0.009%", "1", "1%%", "1/100", "nan", "0.12345%", "1e999%", "100%"} {
		if p, err := Parse(text); err == nil || !strings.Contains(err.Error(), "write a percentage") {
			t.Errorf("%q is %d, %v", text, p, err)
		}
	}
}

// The rows of a part are rows of the file in its order, as many as the part says, at most one apart; the header stays, and
// it does not matter in which pieces the file comes.
func TestCopyRows_TakesThePartInOrder(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9, 10, 99, 1000, 3001} {
		for _, part := range []Part{Least, Whole / 100, 33_333, Whole / 10, Most} {
			text := "name,note\n"
			for i := range n {
				text += fmt.Sprintf("%d,\"a\nb\"\n", i)
			}
			var out, again bytes.Buffer
			share, err := CopyRows(&out, strings.NewReader(text), "x.csv", part)
			if n == 0 {
				if err == nil || !strings.Contains(err.Error(), "x.csv:2: no row follows the header") {
					t.Errorf("a header alone: %v", err)
				}
				continue
			}
			must.Do(t, err)
			if _, err := CopyRows(&again, iotest.HalfReader(strings.NewReader(text)), "x.csv", part); err != nil ||
				again.String() != out.String() {
				t.Fatalf("the same file gives other rows: %v", err)
			}
			rows, found := strings.CutPrefix(out.String(), "name,note\n")
			if !found {
				t.Fatalf("the header is missing in %.60q", out.String())
			}
			got, at := strings.Count(rows, "a\nb"), 0
			for row := range strings.SplitAfterSeq(rows, "\"\n") {
				i := strings.Index(text[at:], "\n"+row)
				if row != "" && i < 0 {
					t.Fatalf("%.60q is no row of the rest of the file", row)
				}
				at += max(i, 0)
			}
			if share.Of != int64(n) || share.Taken != int64(got) {
				t.Errorf("%d of %d rows are taken, and %+v is reported", got, n, share)
			}
			want := float64(n) * float64(part) / float64(Whole)
			if d := float64(got) - max(want, min(1, float64(n))); d < -1 || d > 1 {
				t.Errorf("%s of %d rows are %d", part.Percent(), n, got)
			}
		}
	}
}

// A period of the data as long as a block does not hide a class from the part.
func TestCopyRows_SeesEveryClassOfPeriodicRows(t *testing.T) {
	var text, out bytes.Buffer
	for i := range 10_000 {
		fmt.Fprintf(&text, "%d\n", i%10)
	}
	if _, err := CopyRows(&out, &text, "x.jsonl", Whole/10); err != nil {
		t.Fatal(err)
	}
	for class := range 10 {
		if n := strings.Count(out.String(), fmt.Sprint(class)); n < 60 || n > 140 {
			t.Errorf("class %d has %d rows of 1000, want about 100", class, n)
		}
	}
}

func TestInputs_SayWhatHasAPart(t *testing.T) {
	var files []File
	for i := range 30 {
		files = append(files, File{fmt.Sprintf("img/%d.png", i), fmt.Sprint("d", i), true},
			File{fmt.Sprintf("src/%d.py", i), "d", true})
	}
	files = append(files, File{"a.csv", "d", true}, File{"b.bin", "d", true}, File{"set/x.jsonl", "d", true},
		File{"set/README", "d", true}, File{"l.csv", "d", false})
	for p, want := range map[string]string{"img": "[{img files}]", "src": "[{src whole}]", "a.csv": "[{a.csv rows}]",
		"b.bin": "[{b.bin whole}]", "set": "[{set/x.jsonl rows}]", "l.csv": "[{l.csv whole}]", "none": "[{none whole}]"} {
		if got := fmt.Sprint(Inputs(files, []string{p}, false)); got != want {
			t.Errorf("%s gives %s, want %s", p, got, want)
		}
	}
	if got := fmt.Sprint(Inputs(files, []string{"src"}, true)); got != "[{src files}]" {
		t.Errorf("declared src gives %s", got)
	}
	chosen := Chosen(Whole/10, files, "img")
	for i := range files { // the order of the files does not matter
		files[i], files[len(files)-1-i] = files[len(files)-1-i], files[i]
		if i >= len(files)/2 {
			break
		}
	}
	if again := Chosen(Whole/10, files, "img"); len(chosen) != 3 || fmt.Sprint(again) != fmt.Sprint(chosen) {
		t.Errorf("the part has %v, and in another order %v", chosen, again)
	}
}

// What two samples of a stage with a fixed time and a share say is what the whole takes; one sample bounds it.
func TestPredict_FindsFixedAndShare(t *testing.T) {
	cents, err := money.Parse("0.01")
	must.Do(t, err)
	at := func(p Part) Run { // 20 s and 7000 units fixed
		return Run{p.Share(), 20 + 1000*float64(p)/float64(Whole), cents.Times(7).Add(cents.Times(int(p)))}
	}
	whole := at(Whole)
	p, ok := Predict([]Run{at(Whole / 100), at(Whole / 20)})
	if d := p.Seconds - whole.Seconds; !ok || p.Bound || p.Cost != whole.Cost || d < -1e-6 || d > 1e-6 {
		t.Errorf("the prediction is %+v, and the whole takes %+v", p, whole)
	}
	p, ok = Predict([]Run{at(Whole / 100)})
	if !ok || !p.Bound || p.Cost.Cmp(whole.Cost) < 0 || p.Seconds < whole.Seconds {
		t.Errorf("the bound is %+v, and the whole takes %+v", p, whole)
	}
	// One of three rows is a third, whatever share was asked for; two parts that are the same rows give the bound.
	third := Run{Share{1, 3}, 30, cents.Times(5)}
	for _, runs := range [][]Run{{third}, {third, third}} {
		if p, ok = Predict(runs); !ok || !p.Bound || p.Cost != cents.Times(15) || p.Seconds != 90 {
			t.Errorf("of a third the prediction is %+v", p)
		}
	}
	for _, bad := range []Share{{}, {2, 1}, {-1, 3}, {0, 3}} {
		if p, ok = Predict([]Run{{bad, 1, cents}}); ok {
			t.Errorf("of %+v the prediction is %+v", bad, p)
		}
	}
	huge := Share{1 << 61, 1 << 62}
	if s, ok := (Share{huge.Taken - 1, huge.Of}).Exact(); !ok || s.Of != mostOf || s.Taken != mostOf/2-1 {
		t.Errorf("%+v", s)
	}
	if p, ok = Predict(nil); ok {
		t.Errorf("without a run the prediction is %+v", p)
	}
}

// A file without a row is refused with its file and line, and one row is enough, wherever blank lines stand.
func TestCheckRows_RefusesFilesWithoutARow(t *testing.T) {
	for text, want := range map[string]string{"": "x.csv:1: the file is empty", "a,b\n": "x.csv:2: no row follows the header",
		"a,b\n\n \n": "x.csv:4: no row follows the header", "a,b\n\n1,2": "", "1,2\n": ""} {
		err := CheckRows(strings.NewReader(text), "x.csv")
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "sample.data")) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := CheckRows(strings.NewReader("{}\n"), "x.jsonl"); err != nil {
		t.Error(err)
	}
}
