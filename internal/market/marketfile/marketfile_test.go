package marketfile_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/marketfile"
	"scrimp/internal/test/must"
)

// A market survives writing and reading.
func TestEncode_IsParsedBack(t *testing.T) {
	for _, name := range []string{"calm", "stormy"} {
		m, err := market.Builtin(name, 3, 4*size.GiB)
		must.Do(t, err)
		m.Lines[0].Offer.Accelerator, m.Lines[0].Offer.Accelerators, m.Lines[0].Offer.MaxLifetime = "V100", 2, 24*time.Hour
		m.Lines[2].Available = []market.Span{}
		got, err := marketfile.Parse("m.yaml", marketfile.Encode(m, "two\nlines"))
		must.Do(t, err)
		m.Lines[0].Offer.Provider = "local"
		for i := range got.Lines {
			if !reflect.DeepEqual(got.Lines[i], m.Lines[i]) {
				t.Fatalf("%s: %+v\nis not %+v", name, got.Lines[i], m.Lines[i])
			}
		}
		if got.Repeat != m.Repeat || got.Speed != m.Speed || got.Name != m.Name {
			t.Errorf("%v %v %q", got.Repeat, got.Speed, got.Name)
		}
	}
}

var v100 = marketfile.Import{Machine: "p3.2xlarge", CPUs: 8, Memory: 61 * size.GiB, GPU: "V100", GPUs: 1, Spot: 973_100_000_000, OnDemand: 3_060_000_000_000, Tick: 10 * time.Minute, Notice: 2 * time.Minute}

func TestImport_ReadsPublicFormats(t *testing.T) {
	const preempted = `{"metadata": {"gap_seconds": 600}, "data": [0, 0, 1, 0, 1]}`
	const priced = `{"data": [1, 0], "prices": [0.5, 0.7]}`
	const aws = `{"SpotPriceHistory": [
		{"AvailabilityZone": "us-east-1a", "InstanceType": "p3.2xlarge", "ProductDescription": "Linux/UNIX", "SpotPrice": "0.94", "Timestamp": "2024-01-01T02:00:00Z"},
		{"AvailabilityZone": "us-east-1a", "InstanceType": "p3.2xlarge", "ProductDescription": "Windows", "SpotPrice": "9", "Timestamp": "2024-01-01T01:00:00Z"},
		{"AvailabilityZone": "us-east-1a", "InstanceType": "p3.2xlarge", "ProductDescription": "Linux/UNIX", "SpotPrice": "0.92", "Timestamp": "2024-01-01T00:00:00Z"}]}`
	const runs = "window,zone,start_tick,ticks,available\n0,us-east-1a,0,3,1\n0,us-east-1a,3,2,0\n1,us-east-1a,0,9,1\n"
	mins := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	for name, c := range map[string]struct {
		text  string
		spans []market.Span
		price []market.Price
	}{
		"x/us-east-1a.json": {preempted, []market.Span{{To: mins(20), Notice: mins(2)}, {From: mins(30), To: mins(40), Notice: mins(2)}}, []market.Price{{Rate: 973_100_000_000}}},
		"us-east-1a":        {priced, []market.Span{{From: mins(10), To: mins(20), Notice: mins(2)}}, []market.Price{{Rate: 5e11}, {At: mins(10), Rate: 7e11}}},
		"history.json":      {aws, nil, []market.Price{{Rate: 92e10}, {At: 2 * time.Hour, Rate: 94e10}}},
		"runs.csv":          {runs, []market.Span{{To: mins(30), Notice: mins(2)}}, []market.Price{{Rate: 973_100_000_000}}},
	} {
		with := v100
		if strings.HasPrefix(c.text, "window") {
			with.Window = "0"
		}
		m, err := with.Import([]marketfile.Source{{Name: name, Text: []byte(c.text)}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(m.Lines) != 2 || m.Lines[1].Offer.Capacity != market.OnDemand || m.Lines[1].Price[0].Rate != v100.OnDemand {
			t.Errorf("%s: %+v", name, m.Lines)
			continue
		}
		l := m.Lines[0]
		if l.Offer.Zone != "us-east-1a" || l.Offer.Region != "us-east-1" || !reflect.DeepEqual(l.Available, c.spans) || !reflect.DeepEqual(l.Price, c.price) {
			t.Errorf("%s: %s in %s, %v, %v", name, l.Offer.Zone, l.Offer.Region, l.Available, l.Price)
		}
	}
	ones := v100
	ones.OnesAvailable = true
	m, err := ones.Import([]marketfile.Source{{Name: "a", Text: []byte(preempted)}})
	if err != nil || len(m.Lines[0].Available) != 2 || m.Lines[0].Available[0].From != mins(20) {
		t.Errorf("ones are available: %v, %v", m.Lines[0].Available, err)
	}
}

func TestImport_ErrorNamesProblemAndFix(t *testing.T) {
	blind := v100
	blind.Spot, blind.Tick = 0, 0
	elsewhere := v100
	elsewhere.Window = "7"
	for want, c := range map[string]struct {
		m    marketfile.Import
		text string
	}{
		"data[1]: null is neither":                     {v100, `{"data": [1, null]}`},
		"prices[0]: ":                                  {v100, `{"data": [1], "prices": [null]}`},
		"gap_seconds: -5 is not between":               {v100, `{"metadata": {"gap_seconds": -5}, "data": [1]}`},
		"gap_seconds: 1e-10 is not between":            {v100, `{"metadata": {"gap_seconds": 1e-10}, "data": [1]}`},
		"gap_seconds: 1e+300 is not between":           {v100, `{"metadata": {"gap_seconds": 1e300}, "data": [1]}`},
		"line 3: window: \"1\" after \"0\"":            {v100, "window,zone,start_tick,ticks,available\n0,a,0,3,1\n1,a,0,3,1\n"},
		"no rows of the window":                        {elsewhere, "window,zone,start_tick,ticks,available\n0,a,0,3,1\n"},
		"more than 100 years":                          {v100, "zone,start_tick,ticks,available\na,0,9999999,1\n"},
		"of p3.2xlarge in a at 2024-01-01T00:00:00Z: ": {v100, `{"SpotPriceHistory": [{"AvailabilityZone": "a", "InstanceType": "p3.2xlarge", "SpotPrice": "0", "Timestamp": "2024-01-01T00:00:00Z"}]}`},
		"docs/market-file.md":                          {v100, "hello"},
		"data: missing":                                {v100, `{"metadata": {}}`},
		"--tick":                                       {blind, `{"data": [1]}`},
		"--spot-price":                                 {blind, `{"metadata": {"gap_seconds": 60}, "data": [1]}`},
		"data[1]: 2":                                   {v100, `{"data": [1, 2]}`},
		"one for each":                                 {v100, `{"data": [1, 0], "prices": [1]}`},
		"not above zero":                               {v100, `{"data": [1], "prices": [0]}`},
		"read as JSON":                                 {v100, `{"data": [1`},
		"give --tick":                                  {blind, "zone,start_tick,ticks,available\n"},
		"no column available":                          {v100, "zone,start_tick,ticks\n"},
		"line 3: start_tick: 5":                        {v100, "zone,start_tick,ticks,available\na,0,3,1\na,5,1,0\n"},
		"line 2: available":                            {v100, "zone,start_tick,ticks,available\na,0,3,x\n"},
		"no rows":                                      {v100, "zone,start_tick,ticks,available\n"},
		"no price of a Linux":                          {v100, `{"SpotPriceHistory": []}`},
	} {
		_, err := c.m.Import([]marketfile.Source{{Name: "f", Text: []byte(c.text)}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "f: ") {
			t.Errorf("%s gives %v, want f: … %s", c.text, err, want)
		}
	}
}

func TestParse_ReadsCurrency(t *testing.T) {
	m, err := marketfile.Parse("m", []byte("name: x\noffers:\n  - {zone: a, machine: m, capacity: on-demand, cpus: 1, memory: 1GiB, price: 1}\n"))
	if err != nil || m.Currency != money.USD || m.Speed != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if _, err := marketfile.Parse("m", []byte("offers:\n  - {zone: a, machine: m, capacity: spot, cpus: 1, memory: 1GiB, price: 1, accelerators: 2}\n")); err == nil || !strings.Contains(err.Error(), "accelerator") {
		t.Errorf("accelerators of no name: %v", err)
	}
}

// A reservation is read with its total or its hourly price, and survives writing. Invalid values are reported.
func TestParse_ReadsReservationAndEncodeWritesIt(t *testing.T) {
	const head = "name: m\noffers:\n  - {zone: a, region: r, machine: m, cpus: 1, memory: 1GiB, capacity: reserved, "
	m, err := marketfile.Parse("m.yaml", []byte(head+"reserved: {count: 2, from: 1h, until: 25h, paid: $48.00, team: vision}}\n"))
	must.Do(t, err)
	if r := m.Lines[0].Reserved; r.Count != 2 || r.Rate().String() != "1" || r.Paid.String() != "48" || r.Team != "vision" {
		t.Errorf("%+v at %v", r, r.Rate())
	}
	again, err := marketfile.Parse("m.yaml", marketfile.Encode(m, ""))
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("written and read it is %+v, not %+v (%v)", again, m, err)
	}
	if m, err = marketfile.Parse("m.yaml", []byte(head+"price: 1.50, reserved: {until: 10h}}\n")); err != nil || m.Lines[0].Reserved.Paid.String() != "15" {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []struct{ text, says string }{
		{"reserved: {until: 10h}}", "what was paid"},
		{"price: 1, reserved: {until: 10h, paid: 3}}", "not both"},
		{"price: 1, reserved: {from: 5h, until: 5h}}", "ends after"},
		{"price: 1, reserved: {until: 5h, count: -1}}", "count"},
		{"reserved: {count: 1, until: 1h, paid: 20000000}}", "for an hour of a machine"},
	} {
		if _, err := marketfile.Parse("m.yaml", []byte(head+bad.text+"\n")); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: %v", bad.text, err)
		}
	}
}

func TestParse_RefusesEmptyMachine(t *testing.T) {
	for want, change := range map[string]func(*marketfile.Import){
		"--cpus -1":   func(m *marketfile.Import) { m.CPUs = -1 },
		"--memory":    func(m *marketfile.Import) { m.Memory = 0 },
		"--tick -1s":  func(m *marketfile.Import) { m.Tick = -time.Second },
		"--notice -1": func(m *marketfile.Import) { m.Notice = -time.Second },
	} {
		m := v100
		change(&m)
		if _, err := m.Import([]marketfile.Source{{Name: "f", Text: []byte(`{"data": [1]}`)}}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}

// An error in a long file is reported with its line.
func TestParse_FaultNamesLine(t *testing.T) {
	const head = "name: m\noffers:\n  - {zone: a, machine: m, cpus: 1, memory: 1GiB, capacity: on-demand, price: 3}\n" +
		"  - zone: b\n    machine: m\n    cpus: 1\n    memory: 1GiB\n    capacity: spot\n"
	if _, err := marketfile.Parse("m.yaml", nil); err == nil || !strings.HasPrefix(err.Error(), "m.yaml: the file is empty") {
		t.Errorf("nothing: %v", err)
	}
	for text, want := range map[string]string{
		"    price: 0\n": "m.yaml:9: offer local/b/m/spot: price",
		"    price: 1\n    available:\n      - {from: 0h, to: 2h}\n      - {from: 1h, to: 3h}\n":           "m.yaml:12: offer local/b/m/spot: available: the span from 1h0m0s overlaps",
		"    price:\n      - {at: 0h, price: 1}\n      - {at: 3h, price: 1}\n      - {at: 2h, price: 1}\n": "m.yaml:12: offer local/b/m/spot: price: 2h0m0s does not come after",
		"    price: 1\n    billing:\n      minimum: -1s\n":                                                 "m.yaml:11: offer local/b/m/spot: billing.minimum",
		"": "m.yaml:4: offer local/b/m/spot: price: missing",
		"    price: 1\n  - {zone: b, machine: m, cpus: 1, memory: 1GiB, capacity: spot, price: 3}\n": "m.yaml:10: offers: local/b/m/spot stands twice",
	} {
		if _, err := marketfile.Parse("m.yaml", []byte(head+text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}

// Two files of the same zones provide the availability and the prices of spot.
func TestImport_JoinsPricesAndAvailability(t *testing.T) {
	m := v100
	m.Spot, m.Window = 0, "1"
	const up = "window,zone,start_tick,ticks,available\n0,a,0,9,0\n1,a,0,3,1\n1,a,3,2,0\n1,b,0,5,1\n"
	const usd = "window,zone,start_tick,ticks,usd_per_hour\n0,a,0,9,7\n1,a,0,4,1.5\n1,a,4,1,1.25\n1,b,0,5,0.9\n"
	text := func(list ...string) (files []marketfile.Source) {
		for i, l := range list {
			files = append(files, marketfile.Source{Name: string(rune('f' + i)), Text: []byte(l)})
		}
		return files
	}
	for _, files := range [][]marketfile.Source{text(up, usd), text(usd, up)} {
		got, err := m.Import(files)
		if err != nil || len(got.Lines) != 4 {
			t.Fatalf("%+v, %v", got.Lines, err)
		}
		l := got.Lines[0]
		if len(l.Available) != 1 || l.Available[0].To != 30*time.Minute || len(l.Price) != 2 || l.Price[1].At != 40*time.Minute || l.Price[1].Rate != 1_250_000_000_000 {
			t.Errorf("%+v", l)
		}
	}
	for want, files := range map[string][]marketfile.Source{
		"price of a: no file says it":          text(up),
		"g: zone: a stands in another file":    text(up, up),
		"g: ticks: b ends at tick 4":           text(up, strings.Replace(usd, "b,0,5", "b,0,4", 1)),
		"g: ticks: a ends at 40m0s":            text(up, strings.Replace(strings.Replace(usd, "b,0,5", "b,0,4", 1), "1,a,4,1,1.25\n", "", 1)),
		"f: line 3: usd_per_hour: 0 is not":    text(strings.Replace(usd, "1.5", "0", 1)),
		"f: line 1: the columns available and": text(strings.Replace(usd, "usd_per_hour", "usd_per_hour,available", 1)),
	} {
		if _, err := m.Import(files); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}

// A value of the wrong kind and an unknown field are named in the words of the file, with their line.
func TestParse_NamesMisfitsInWordsOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\noffers:\n  - {zone: a, cpus: nope}\n": "m.yaml: line 3: text `nope` stands where a number belongs: ",
		"name: x\noffers:\n  - {zone: a, boot: 7}\n":    "m.yaml: line 3: a number `7` stands where a span such as 10m belongs: ",
		"name: x\noffers:\n  - zone: a\n    cpu: 3\n":   "m.yaml: line 4: cpu is unknown there: ",
		"offers: [a]\n": "m.yaml: line 1: text `a` stands where a map of fields belongs: ",
	} {
		if _, err := marketfile.Parse("m.yaml", []byte(text)); err == nil || err.Error() != want+"docs/market-file.md lists the fields" {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
