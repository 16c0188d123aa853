package money_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"

	"scrimp/money"
)

// The twin of Amount: counts of 1e-12 units in big.Int, and the limits of 128 bits.
var (
	largest  = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))
	smallest = new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), 127))
)

const (
	largestText  = "170141183460469231731687303.715884105727"
	smallestText = "-170141183460469231731687303.715884105728"
)

func amount(t interface{ Fatalf(string, ...any) }, b *big.Int) money.Amount {
	a, ok := money.FromBig(b)
	if !ok {
		t.Fatalf("FromBig(%v) does not fit, but it is within 128 bits", b)
	}
	return a
}

// drawBig draws over all of 128 bits, with its limits and the seam at 64 bits often.
func drawBig() *rapid.Generator[*big.Int] {
	return rapid.Custom(func(t *rapid.T) *big.Int {
		n := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 16).Draw(t, "bytes"))
		n.Rsh(n, rapid.UintRange(1, 127).Draw(t, "shift"))
		switch rapid.IntRange(0, 5).Draw(t, "near") {
		case 0:
			n.Sub(largest, n.Rsh(n, 120))
		case 1:
			n.Add(smallest, n.Rsh(n, 120))
		case 2:
			n.Add(new(big.Int).Lsh(big.NewInt(1), 64), n.Rsh(n, 124)).Sub(n, big.NewInt(4))
		case 3:
			n.Neg(n)
		}
		return n
	})
}

// panics reports whether f did.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestArithmeticIsThatOfBigInt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawBig().Draw(t, "x"), drawBig().Draw(t, "y")
		checkArithmetic(t, x, y)
	})
}

func checkArithmetic(t interface {
	Fatalf(string, ...any)
	Helper()
}, x, y *big.Int) {
	t.Helper()
	a, b := amount(t, x), amount(t, y)
	for _, op := range []struct {
		name string
		got  func() money.Amount
		want *big.Int
	}{
		{"a + b", func() money.Amount { return a.Add(b) }, new(big.Int).Add(x, y)},
		{"a - b", func() money.Amount { return a.Sub(b) }, new(big.Int).Sub(x, y)},
		{"-a", a.Neg, new(big.Int).Neg(x)},
	} {
		if op.want.Cmp(largest) > 0 {
			op.want = largest
		} else if op.want.Cmp(smallest) < 0 {
			op.want = smallest
		}
		if got := op.got(); got.Big().Cmp(op.want) != 0 {
			t.Fatalf("%s = %v with a = %v, b = %v, want %v", op.name, got.Big(), x, y, op.want)
		}
	}
	if got, want := a.Cmp(b), x.Cmp(y); got != want {
		t.Fatalf("Cmp(%v, %v) = %d, want %d", x, y, got, want)
	}
	if (a == b) != (x.Cmp(y) == 0) {
		t.Fatalf("%v == %v is %v", x, y, a == b)
	}
	if a.Sign() != x.Sign() || a.IsZero() != (x.Sign() == 0) {
		t.Fatalf("Sign(%v) = %d, IsZero %v", x, a.Sign(), a.IsZero())
	}
	least := x
	if y.Cmp(x) < 0 {
		least = y
	}
	if money.Min(a, b).Big().Cmp(least) != 0 {
		t.Fatalf("Min(%v, %v) = %v", x, y, money.Min(a, b).Big())
	}
}

func FuzzArithmetic(f *testing.F) {
	f.Add(int64(0), uint64(0), int64(0), uint64(0))
	f.Add(int64(math.MaxInt64), uint64(math.MaxUint64), int64(0), uint64(1))
	f.Add(int64(math.MinInt64), uint64(0), int64(-1), uint64(math.MaxUint64))
	f.Add(int64(math.MinInt64), uint64(0), int64(math.MinInt64), uint64(0))
	f.Add(int64(-1), uint64(math.MaxUint64), int64(0), uint64(1))
	f.Fuzz(func(t *testing.T, ahi int64, alo uint64, bhi int64, blo uint64) {
		checkArithmetic(t, wide(ahi, alo), wide(bhi, blo))
	})
}

func wide(hi int64, lo uint64) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(hi), 64)
	return n.Add(n, new(big.Int).SetUint64(lo))
}

func TestTextAndColumnsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := drawBig().Draw(t, "x")
		a := amount(t, x)
		back, err := money.Parse(a.String())
		if err != nil || back != a {
			t.Fatalf("Parse(%q) = %v, %v, want the amount that was printed", a.String(), back, err)
		}
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var decoded money.Amount
		if err := json.Unmarshal(data, &decoded); err != nil || decoded != a {
			t.Fatalf("JSON %s became %v, %v", data, decoded, err)
		}
		if data[0] != '"' {
			t.Fatalf("JSON of an amount is %s, not a string", data)
		}
		binary := a.AppendBinary([]byte{7})
		twin := new(big.Int).And(x, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1)))
		if len(binary) != 17 || binary[0] != 7 || !bytes.Equal(binary[1:], twin.FillBytes(make([]byte, 16))) {
			t.Fatalf("AppendBinary(%v) = %x", x, binary)
		}
		micros, picos, ok := a.Micros()
		whole := new(big.Int).Quo(x, big.NewInt(1_000_000))
		if ok != whole.IsInt64() {
			t.Fatalf("Micros(%v) says %v", x, ok)
		}
		if ok && money.FromMicros(micros, picos) != a {
			t.Fatalf("FromMicros(%d, %d) = %v, want %v", micros, picos, money.FromMicros(micros, picos), a)
		}
		if ok && a.Sign() > 0 && (micros < 0 || picos < 0 || picos >= 1_000_000) {
			t.Fatalf("Micros(%v) = %d, %d, which a database would refuse", x, micros, picos)
		}
	})
}

func TestColumnsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sum money.Amount
		var micros, picos int64
		for _, n := range rapid.SliceOf(rapid.Int64()).Draw(t, "picos") {
			m, p, _ := money.Picos(n).Micros()
			micros, picos, sum = micros+m, picos+p, sum.Add(money.Picos(n))
		}
		if got := money.FromMicros(micros, picos); got != sum {
			t.Fatalf("the columns sum to %v, the amounts to %v", got, sum)
		}
	})
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"0", "0"},
		{"-0", "0"},
		{"-0.000", "0"},
		{"12.34", "12.34"},
		{"-12.340", "-12.34"},
		{"007", "7"},
		{"0.000000000001", "0.000000000001"},
		{"-0.000000000001", "-0.000000000001"},
		{largestText, largestText},
		{smallestText, smallestText},
	} {
		a, err := money.Parse(c.in)
		if err != nil || a.String() != c.want {
			t.Errorf("Parse(%q) = %v, %v, want %s", c.in, a, err, c.want)
		}
	}
	for _, c := range []struct{ in, why string }{
		{"", "not a decimal"}, {"-", "not a decimal"}, {".", "not a decimal"}, {".5", "not a decimal"},
		{"5.", "not a decimal"},
		{"+5", "not a decimal"}, {"--5", "not a decimal"}, {"1e3", "not a decimal"}, {"0x10", "not a decimal"},
		{"1_000", "not a decimal"},
		{"1,000", "not a decimal"}, {"1.2.3", "not a decimal"}, {" 1", "not a decimal"}, {"1 ", "not a decimal"},
		{"$1", "not a decimal"},
		{"NaN", "not a decimal"}, {"Inf", "not a decimal"}, {"١٢", "not a decimal"}, {"1\x00", "not a decimal"},
		{"1.-5", "not a decimal"},
		{"0.abcdefghijklmnop", "not a decimal"},
		{"0.0000000000001", "more than 12 decimals"},
		{"170141183460469231731687303.715884105728", "too large"},
		{"-170141183460469231731687303.715884105729", "too large"},
		{strings.Repeat("9", 1_000_000), "not a decimal"},
	} {
		_, err := money.Parse(c.in)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("Parse(%.30q) says %v, want %q", c.in, err, c.why)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("Parse of %d bytes repeats them in its error", len(c.in))
		}
	}
}

func TestAmountRefusesNumbersInJSON(t *testing.T) {
	var a money.Amount
	for _, in := range []string{`1.5`, `true`, `{}`, `"1.5 USD"`, `""`} {
		if err := json.Unmarshal([]byte(in), &a); err == nil {
			t.Errorf("JSON %s was read as the amount %v", in, a)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.5", "-0.000000000001", largestText, smallestText, "1e9", "", ".", "--1",
		"00000.10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := money.Parse(s)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatalf("Parse(%q) = %v, but it is not a number", s, a)
		}
		if got := new(big.Rat).SetFrac(a.Big(), big.NewInt(1_000_000_000_000)); got.Cmp(want) != 0 {
			t.Fatalf("Parse(%q) = %v", s, got)
		}
	})
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		in       string
		currency money.Currency
		places   int
		want     string
	}{
		{"12.34", money.USD, 2, "$12.34"},
		{"0.005", money.USD, 2, "$0.01"},
		{"0.004999999999", money.USD, 2, "$0.00"},
		{"-0.005", money.USD, 2, "-$0.01"},
		{"-0.004999999999", money.USD, 2, "$0.00"}, // no negative zero
		{"-0.05", money.USD, 2, "-$0.05"},
		{"0.995", money.USD, 2, "$1.00"},
		{"0.5", money.USD, 0, "$1"},
		{"-0.4", money.USD, 0, "$0"},
		{"1234567.891", money.USD, 1, "$1234567.9"},
		{"12.34", "EUR", 2, "12.34 EUR"},
		{"-12.34", "EUR", 2, "-12.34 EUR"},
		{"0.000000000001", money.USD, 12, "$0.000000000001"},
		{"0.000000000001", money.USD, 99, "$0.000000000001"},
		{"7.5", money.USD, -3, "$8"},
		{largestText, money.USD, 2, "$170141183460469231731687303.72"},
		{smallestText, money.USD, 2, "-$170141183460469231731687303.72"},
	} {
		a, err := money.Parse(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := money.Format(a, c.currency, c.places); got != c.want {
			t.Errorf("Format(%s, %s, %d) = %q, want %q", c.in, c.currency, c.places, got, c.want)
		}
	}
}

func TestFormatRoundsHalfAwayFromZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, places := drawBig().Draw(t, "x"), rapid.IntRange(0, 12).Draw(t, "places")
		got := money.Format(amount(t, x), money.USD, places)
		// The twin: big.Rat rounds halves away from zero.
		want := new(big.Rat).SetFrac(x, big.NewInt(1_000_000_000_000)).FloatString(places)
		if digits, negative := strings.CutPrefix(want, "-"); negative {
			want = "-$" + digits
			if strings.Trim(digits, "0.") == "" {
				want = "$" + digits
			}
		} else {
			want = "$" + want
		}
		if got != want {
			t.Fatalf("Format(%v, %d) = %q, want %q", x, places, got, want)
		}
	})
}

func TestEstimated(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e21, -1e21} {
		if a, ok := money.Estimated(f); ok {
			t.Errorf("Estimated(%v) = %v", f, a)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.Float64Range(-1e9, 1e9).Draw(t, "f")
		a, ok := money.Estimated(f)
		if !ok || math.Abs(a.Float()-f) > 1e-12+math.Abs(f)*1e-15 {
			t.Fatalf("Estimated(%v) = %v, %v", f, a, ok)
		}
	})
}

// What is small is not shown as nothing, and what is round has no tail of zeros.
func TestShort(t *testing.T) {
	for text, want := range map[string]string{"0": "$0.00", "5": "$5.00", "1234.5678": "$1234.57", "0.5": "$0.50", "0.1": "$0.10", "0.01": "$0.01",
		"0.0278": "$0.0278", "0.00506": "$0.00506", "0.000505955": "$0.000506", "0.000000000001": "$0.000000000001", "-0.0269": "-$0.0269",
		"-3": "-$3.00", "0.0999": "$0.0999", "0.09999": "$0.10"} {
		a, err := money.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := money.Short(a, money.USD); got != want {
			t.Errorf("%s is written %s, want %s", text, got, want)
		}
		if got := money.ShortFloat(a.Float(), money.USD); got != want {
			t.Errorf("%v is written %s, want %s", a.Float(), got, want)
		}
	}
	if a, _ := money.Parse("0.0042"); money.Short(a, "EUR") != "0.0042 EUR" {
		t.Errorf("in euros: %s", money.Short(a, "EUR"))
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), 1e300} {
		if got := money.ShortFloat(v, money.USD); got != "unknown" {
			t.Errorf("%v is written %s", v, got)
		}
	}
}
