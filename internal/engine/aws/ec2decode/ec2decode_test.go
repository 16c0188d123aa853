//go:build !local

package ec2decode

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/smithy-go"
)

// wire answers each request with the same status and body, which may end with an error.
type wire struct {
	status int
	body   string
	cut    error
	asked  int
	closed int
}

// Do implements aws.HTTPClient.
func (w *wire) Do(*http.Request) (*http.Response, error) {
	w.asked++
	body := io.MultiReader(strings.NewReader(w.body), broken{w.cut})
	return &http.Response{StatusCode: w.status, Header: http.Header{"X-Amzn-Requestid": {"r-1"}},
		Body: struct {
			io.Reader
			io.Closer
		}{body, closer{w}}}, nil
}

type closer struct{ w *wire }

func (c closer) Close() error { c.w.closed++; return nil }

// operations are the calls that this package decodes, by the SDK alone or lean. Fields that are not read are removed.
var operations = map[string]func(context.Context, *wire, bool) (any, error){
	"DescribeInstanceTypes": func(ctx context.Context, w *wire, lean bool) (any, error) {
		out, err := client(w).DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{}, options(lean)...)
		if err != nil {
			return nil, err
		}
		for n, t := range out.InstanceTypes {
			out.InstanceTypes[n] = needed(&t)
		}
		return []any{out.InstanceTypes, aws.ToString(out.NextToken), out.NextToken == nil}, nil
	},
	"DescribeInstanceTypeOfferings": func(ctx context.Context, w *wire, lean bool) (any, error) {
		out, err := client(w).DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{}, options(lean)...)
		if err != nil {
			return nil, err
		}
		for n, o := range out.InstanceTypeOfferings {
			out.InstanceTypeOfferings[n] = types.InstanceTypeOffering{InstanceType: o.InstanceType, Location: o.Location}
		}
		return []any{out.InstanceTypeOfferings, out.NextToken}, nil
	},
	"DescribeSpotPriceHistory": func(ctx context.Context, w *wire, lean bool) (any, error) {
		out, err := client(w).DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{}, options(lean)...)
		if err != nil {
			return nil, err
		}
		for n, p := range out.SpotPriceHistory {
			out.SpotPriceHistory[n] = types.SpotPrice{AvailabilityZone: p.AvailabilityZone, InstanceType: p.InstanceType,
				SpotPrice: p.SpotPrice, Timestamp: p.Timestamp}
		}
		return []any{out.SpotPriceHistory, out.NextToken}, nil
	},
	"GetProducts": func(ctx context.Context, w *wire, lean bool) (any, error) {
		c := pricing.New(pricing.Options{Region: "us-east-1", HTTPClient: w, Retryer: aws.NopRetryer{},
			Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
		var with []func(*pricing.Options)
		if lean {
			with = append(with, LeanProducts)
		}
		out, err := c.GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2")}, with...)
		if err != nil {
			return nil, err
		}
		return []any{out.PriceList, out.NextToken}, nil
	},
}

func client(w *wire) *ec2.Client {
	return ec2.New(ec2.Options{Region: "us-east-1", HTTPClient: w, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

func options(lean bool) []func(*ec2.Options) {
	if !lean {
		return nil
	}
	return []func(*ec2.Options){Lean}
}

// needed returns the fields of a type that are read.
func needed(t *types.InstanceTypeInfo) types.InstanceTypeInfo {
	n := types.InstanceTypeInfo{InstanceType: t.InstanceType, BareMetal: t.BareMetal,
		SupportedUsageClasses: t.SupportedUsageClasses, MemoryInfo: t.MemoryInfo, PlacementGroupInfo: t.PlacementGroupInfo}
	if v := t.VCpuInfo; v != nil {
		n.VCpuInfo = &types.VCpuInfo{DefaultVCpus: v.DefaultVCpus}
	}
	if p := t.ProcessorInfo; p != nil {
		n.ProcessorInfo = &types.ProcessorInfo{SupportedArchitectures: p.SupportedArchitectures}
	}
	if t.GpuInfo != nil {
		n.GpuInfo = &types.GpuInfo{}
		for _, g := range t.GpuInfo.Gpus {
			n.GpuInfo.Gpus = append(n.GpuInfo.Gpus, types.GpuDeviceInfo{Count: g.Count, Manufacturer: g.Manufacturer,
				MemoryInfo: g.MemoryInfo, Name: g.Name})
		}
	}
	return n
}

// same decodes a body with the SDK and with this package and compares the results. This package must return the SDK's
// errors, unless the error is about the value of a field that is not read.
func same(t *testing.T, operation string, w wire) (lean any, err error) {
	t.Helper()
	plain := w
	want, refused := operations[operation](t.Context(), &plain, false)
	got, err := operations[operation](t.Context(), &w, true)
	if w.asked != plain.asked || w.closed != plain.closed {
		t.Errorf("asked %d times and closed %d bodies, the SDK %d and %d", w.asked, w.closed, plain.asked, plain.closed)
	}
	switch {
	case err != nil && (refused == nil || err.Error() != refused.Error()):
		t.Errorf("%q: error %q, the SDK's %q", w.body, err, refused)
	case err == nil && refused != nil && !unread(refused):
		t.Errorf("%q: decoded, the SDK says %q", w.body, refused)
	case err == nil && refused == nil && !reflect.DeepEqual(got, want):
		t.Errorf("%q:\n%+v, the SDK\n%+v", w.body, got, want)
	}
	return got, err
}

// unread reports whether the SDK refuses a value, not the syntax.
func unread(err error) bool {
	text := err.Error()
	for _, value := range []string{"strconv.Parse", "expected value for", "expected end element", "parsing time",
		"unable to parse"} {
		if strings.Contains(text, value) {
			return true
		}
	}
	return false
}

func xml(body string) string {
	return declaration + "\n" + `<R xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">` + body + "</R>"
}

const aType = `<item><instanceType>p5.48xlarge</instanceType><currentGeneration>true</currentGeneration>
  <supportedUsageClasses><item>on-demand</item><item>spot</item></supportedUsageClasses><bareMetal>false</bareMetal>
  <processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures>
  <sustainedClockSpeedInGhz>3.6</sustainedClockSpeedInGhz></processorInfo><vCpuInfo><defaultVCpus>192</defaultVCpus>
  <validCores><item>2</item></validCores></vCpuInfo><memoryInfo><sizeInMiB>2097152</sizeInMiB></memoryInfo><new/>
  <gpuInfo><gpus><item><name>H100</name><manufacturer>NVIDIA</manufacturer><count>8</count><memoryInfo>
  <sizeInMiB>81920</sizeInMiB></memoryInfo></item></gpus><totalGpuMemoryInMiB>655360</totalGpuMemoryInMiB></gpuInfo>
  <placementGroupInfo><supportedStrategies><item>cluster</item></supportedStrategies></placementGroupInfo></item>`

// bodies are answers by operation; the first is in EC2's usual form.
var bodies = map[string][]string{
	"DescribeInstanceTypes": {
		xml(`<requestId>r</requestId><instanceTypeSet>` + aType + `<item/></instanceTypeSet><nextToken>abc</nextToken>`),
		xml(`<instanceTypeSet>` + aType + `</instanceTypeSet><instanceTypeSet>` + aType + `</instanceTypeSet>`),
		xml(`<instanceTypeSet><item><vCpuInfo><defaultVCpus>many</defaultVCpus></vCpuInfo></item></instanceTypeSet>`),
		xml(`<instanceTypeSet><item><BAREMETAL>true</BAREMETAL><!-- c --></item></instanceTypeSet>`),
	},
	"DescribeInstanceTypeOfferings": {
		xml(`<instanceTypeOfferingSet><item><instanceType>m5.large</instanceType><locationType>availability-zone
  </locationType><location>us-east-1a</location></item></instanceTypeOfferingSet>`),
		xml(`<instanceTypeOfferingSet><item><location>a&amp;b</location></item></instanceTypeOfferingSet>`),
		xml(`<instanceTypeOfferingSet/>`),
	},
	"DescribeSpotPriceHistory": {
		xml(`<spotPriceHistorySet><item><instanceType>m5.large</instanceType><productDescription>Linux/UNIX
  </productDescription><spotPrice>0.041600</spotPrice><timestamp>2026-11-24T10:00:00.000Z</timestamp>
  <availabilityZone>us-east-1a</availabilityZone>
  <availabilityZoneId>use1-az1</availabilityZoneId></item></spotPriceHistorySet><nextToken></nextToken>`),
		xml(`<spotPriceHistorySet><item><timestamp>yesterday</timestamp></item></spotPriceHistorySet>`),
		xml(`<spotPriceHistorySet><item><spotPrice>1</spotPrice></item>`) + `</R>`,
	},
	"GetProducts": {
		`{"FormatVersion":"aws_v1","NextToken":"t","PriceList":["{\"a\":\"b\\\"\"}", "{}"]}`,
		`{"FormatVersion":"aws_v1", "PriceList" : [ ], "Other":{"a":["b"]}}` + "\n",
		`{"PriceList":["\u00e9"],"NextToken":null}`,
		`{"PriceList":["a"],"PriceList":["b"]}`,
		`{"PriceList":["a",]}`,
		`{"PriceList":[1]}`,
	},
}

// Every answer decodes as with the SDK: in EC2's usual form, in odd forms, cut off at any byte, and as an EC2 error.
func TestLean_DecodesLikeTheSDK(t *testing.T) {
	for operation, list := range bodies {
		for _, body := range list {
			_, _ = same(t, operation, wire{status: 200, body: body})
			_, _ = same(t, operation, wire{status: 200, body: body, cut: errors.New("connection reset")})
			_, _ = same(t, operation, wire{status: 500, body: body})
		}
		for n := range list[0] {
			_, _ = same(t, operation, wire{status: 200, body: list[0][:n]})
			_, _ = same(t, operation, wire{status: 200, body: list[0][:n], cut: io.ErrUnexpectedEOF})
		}
	}
	const throttled = `<Response><Errors><Error><Code>RequestLimitExceeded</Code></Error></Errors></Response>`
	_, err := same(t, "DescribeInstanceTypes", wire{status: 503, body: throttled})
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != "RequestLimitExceeded" {
		t.Errorf("error %v, want RequestLimitExceeded", err)
	}
}

// Every answer decodes as with the SDK after random changes: bytes removed, repeated or replaced, or a piece of
// another answer. Fuzz tests search further, but need minutes to build the SDK.
func TestLean_DecodesChangedAnswersLikeTheSDK(t *testing.T) {
	const seed = 1
	chance := rand.New(rand.NewPCG(seed, 0))
	here := 0
	for _, operation := range slices.Sorted(maps.Keys(bodies)) {
		list := bodies[operation]
		for range 1500 {
			body := []byte(list[chance.IntN(len(list))])
			for range 1 + chance.IntN(3) {
				from, other := chance.IntN(len(body)), list[chance.IntN(len(list))]
				to := min(len(body), from+1+chance.IntN(12))
				piece := other[chance.IntN(len(other)):]
				switch chance.IntN(4) {
				case 0:
					body = slices.Delete(body, from, to)
				case 1:
					body = slices.Insert(body, from, slices.Clone(body[from:to])...)
				case 2:
					body[from] ^= 1 << chance.IntN(8)
				default:
					body = slices.Insert(body, from, []byte(piece[:min(len(piece), 30)])...)
				}
				body = append(body, '\n')
			}
			if decoders[operation](body) != nil {
				here++
			}
			if _, _ = same(t, operation, wire{status: 200, body: string(body)}); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	if here < 100 {
		t.Errorf("%d changed answers were decoded here, want 100: the test shows nothing", here)
	}
	t.Logf("%d changed answers were decoded here", here)
}

// This package, not the SDK, decodes EC2's usual form.
func TestLean_DecodesUsualAnswersItself(t *testing.T) {
	for operation, list := range bodies {
		if decoders[operation]([]byte(list[0])) == nil {
			t.Errorf("%s: the answer is odd: %s", operation, list[0])
		}
	}
	if p, ok := leanProduct(aProduct); !ok || p.Machine != "m5.large" || len(p.Prices) != 1 {
		t.Errorf("the product is odd: %+v", p)
	}
}

// The option on another call is a bug of ours.
func TestLean_RefusesOtherCalls(t *testing.T) {
	_, err := client(&wire{status: 200}).DescribeRegions(t.Context(), &ec2.DescribeRegionsInput{}, Lean)
	if err == nil || !strings.Contains(err.Error(), "DescribeRegions is not decoded here") {
		t.Error(err)
	}
}

const aProduct = `{"product":{"productFamily":"Compute Instance","attributes":{"instanceType":"m5.large","vcpu":"2"},
  "sku":"S"},"terms":{"OnDemand":{"S.T":{"priceDimensions":{"S.T.R":{"unit":"Hrs","beginRange":"0","endRange":"Inf",
  "description":"$0.096 per \"On Demand\" hour","appliesTo":[],"pricePerUnit":{"USD":"0.0960000000"}}},"sku":"S",
  "termAttributes":{}}},"Reserved":{"S.U":{"termAttributes":{"LeaseContractLength":"1yr"}}}},"version":"2026"}`

func FuzzAnswer(f *testing.F) {
	for operation, list := range bodies {
		for _, body := range list {
			f.Add(operation, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, operation string, body []byte) {
		if operations[operation] != nil {
			_, _ = same(t, operation, wire{status: 200, body: string(body)})
		}
	})
}

// ProductOf reads a product as encoding/json does. Of a repeated key encoding/json keeps the last value; this test
// covers both.
func FuzzProduct(f *testing.F) {
	for _, text := range []string{aProduct, `{}`, `{"product":{"attributes":{"INSTANCETYPE":"a\u0062"}}}`, `{"terms":1}`,
		`{"terms":{"OnDemand":{"a":{"priceDimensions":{"b":{"unit":"Hrs","pricePerUnit":{"CNY":"1"}}}}}}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := leanProduct(text)
		if !ok {
			return
		}
		want, ok := plainProduct(text)
		if !ok || got.Machine != want.Machine {
			t.Errorf("%q: %+v, encoding/json %+v, %v", text, got, want, ok)
		}
		for _, p := range want.Prices {
			found := false
			for _, q := range got.Prices {
				found = found || p == q
			}
			if !found {
				t.Errorf("%q: %+v has not %+v", text, got, p)
			}
		}
	})
}

// BenchmarkAnswer decodes a page of types, lean and by the SDK.
func BenchmarkAnswer(b *testing.B) {
	body := xml(`<instanceTypeSet>` + strings.Repeat(aType, 100) + `</instanceTypeSet>`)
	for _, lean := range []bool{true, false} {
		b.Run(map[bool]string{true: "lean", false: "sdk"}[lean], func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				out, err := client(&wire{status: 200, body: body}).DescribeInstanceTypes(b.Context(),
					&ec2.DescribeInstanceTypesInput{}, options(lean)...)
				if err != nil || len(out.InstanceTypes) != 100 || *out.InstanceTypes[99].GpuInfo.Gpus[0].Count != 8 {
					b.Fatal(err)
				}
			}
		})
	}
}
