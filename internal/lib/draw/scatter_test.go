package draw_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/lib/draw"
)

func TestDots_PlacesPointsByTheirValuesAndNamesInside(t *testing.T) {
	usd := func(v float64) string { return fmt.Sprintf("$%.2f", v) }
	svg := draw.Dots("job: cost against time", []draw.Dot{
		{X: 43200, Y: 242, Name: "gcp/us-central1/a2-ultragpu-8g/spot"},
		{X: 16600, Y: 255, Name: "aws/us-east-1/p5.48xlarge/on-demand"},
		{X: 16700, Y: 256, Title: "a <b>", Hollow: true}, {X: math.NaN(), Y: 3, Name: "nowhere"},
	}, usd)
	at := regexp.MustCompile(`<circle cx="([0-9.]+)" cy="([0-9.]+)"`).FindAllStringSubmatch(svg, -1)
	if len(at) != 3 || strings.Contains(svg, "nowhere") || strings.Contains(svg, "NaN") ||
		!strings.Contains(svg, "a &lt;b&gt;") {
		t.Fatal(svg)
	}
	num := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	if !(num(at[0][1]) < num(at[2][1]) && num(at[0][2]) < num(at[2][2])) {
		t.Errorf("the later and cheaper is not to the right and below: %v", at)
	}
	for _, m := range regexp.MustCompile(`<text x="([0-9.]+)" y="([0-9.]+)" class="name( end)?">([^<]*)`).
		FindAllStringSubmatch(svg, -1) {
		from, to := num(m[1]), num(m[1])+6*float64(len(m[4]))
		if m[3] != "" {
			from, to = num(m[1])-6*float64(len(m[4])), num(m[1])
		}
		if from < 0 || to > 900 || num(m[2]) < 0 {
			t.Errorf("%s stands at %.0f to %.0f", m[4], from, to)
		}
	}
	if one := draw.Dots("x", []draw.Dot{{X: 3600, Y: 1, Name: "a"}}, usd); !strings.Contains(one, "<circle") ||
		strings.Contains(one, "NaN") || strings.Contains(one, "<path") {
		t.Errorf("a single plan is drawn as %s", one)
	}
	if draw.Dots("x", nil, usd) != "" {
		t.Error("nothing is drawn as something")
	}
}
