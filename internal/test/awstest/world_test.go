//go:build !local

package awstest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	ptypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"scrimp/internal/lib/awshttp"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/must"
)

func get[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		must.Do(t, err)
		return v
	}
}

// keys returns the cloud's own credentials.
func (c *cloud) keys() aws.CredentialsProvider {
	return credentials.NewStaticCredentialsProvider(c.Key, c.Secret, "")
}

func TestSpot_StatusNamesTheInterruption(t *testing.T) {
	for _, tt := range []struct {
		name, code, state, reason string
		end                       func(*cloud, string) error
	}{
		{"interrupted", "instance-terminated-no-capacity", "closed", "Server.SpotInstanceTermination",
			func(c *cloud, id string) error { return c.Interrupt(id, "") }},
		{"capacity", "instance-terminated-no-capacity", "closed", "Server.SpotInstanceTermination",
			func(c *cloud, _ string) error {
				return c.SetCapacity(catalog.Pool{Type: "g5.xlarge", Zone: "us-east-1a", Spot: true}, 0)
			}},
		{"price", "instance-terminated-by-price", "closed", "Server.SpotInstanceTermination",
			func(c *cloud, _ string) error { return c.SetSpotPrice("g5.xlarge", "us-east-1a", "0.9") }},
		{"user", "instance-terminated-by-user", "closed", "Client.UserInitiatedShutdown",
			func(c *cloud, id string) error { return c.Terminate(id) }},
		{"itself", "instance-terminated-by-user", "closed", "Client.InstanceInitiatedShutdown",
			func(c *cloud, id string) error { return c.Shutdown(id) }},
		{"hardware", "instance-terminated-by-service", "closed", "Server.InternalError",
			func(c *cloud, id string) error { return c.Kill(id) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := start(t, awstest.Options{})
			i := c.run(t, spot("g5.xlarge", "0.5"))[0]
			must.Do(t, tt.end(c, *i.InstanceId))
			ask := &ec2.DescribeSpotInstanceRequestsInput{SpotInstanceRequestIds: []string{*i.SpotInstanceRequestId}}
			r := get[*ec2.DescribeSpotInstanceRequestsOutput](t)(c.ec2.DescribeSpotInstanceRequests(t.Context(), ask))
			if tt.reason == "Server.SpotInstanceTermination" {
				if *r.SpotInstanceRequests[0].Status.Code != "marked-for-termination" || c.see(t,
					*i.InstanceId).State.Name != "running" {
					t.Errorf("in the notice: %+v", r.SpotInstanceRequests[0].Status)
				}
				c.at = c.at.Add(2 * time.Minute)
				r = get[*ec2.DescribeSpotInstanceRequestsOutput](
					t,
				)(
					c.ec2.DescribeSpotInstanceRequests(t.Context(), ask),
				)
			}
			got := r.SpotInstanceRequests[0]
			if *got.Status.Code != tt.code || string(got.State) != tt.state || *got.InstanceId != *i.InstanceId {
				t.Errorf("request %s %s", *got.Status.Code, got.State)
			}
			if i := c.see(t, *i.InstanceId); i.State.Name != "terminated" || *i.StateReason.Code != tt.reason {
				t.Errorf("instance %s %+v", i.State.Name, i.StateReason)
			}
		})
	}
}

// The bill equals that of a slow twin that goes second by second.
func TestBill_EqualsASumOfSeconds(t *testing.T) {
	chance := rand.New(rand.NewPCG(7, 7))
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	prices := []catalog.Price{{USD: "0.301"}}
	for k := range 20 {
		prices = append(prices, catalog.Price{From: begun.Add(time.Duration(1+k*397) * time.Second),
			USD: fmt.Sprintf("0.%04d", 1000+chance.IntN(8000))})
	}
	c := start(t, awstest.Options{Public: true, Spans: awstest.Spans{Pending: 3 * time.Second, Ending: time.Minute},
		Spot: map[catalog.Pool][]catalog.Price{{Type: "g5.xlarge", Zone: "us-east-1a"}: prices}})
	type twin struct {
		spot, cloud bool
		from, to    time.Time
	}
	twins := map[string]*twin{}
	var order []string
	for k := range 40 {
		c.at = c.at.Add(time.Duration(chance.IntN(100)) * time.Second)
		in := one("g5.xlarge")
		if k%2 == 0 {
			in = spot("g5.xlarge", "")
		}
		id := *c.run(t, in)[0].InstanceId
		order = append(order, id)
		twins[id] = &twin{spot: k%2 == 0, from: c.at.Add(3 * time.Second)}
		if k < 3 {
			continue
		}
		c.at = c.at.Add(time.Duration(3+chance.IntN(200)) * time.Second)
		end := order[k-3] // it has run for at least four minutes, or for at least an hour
		w := twins[end]
		switch {
		case w.spot && k%4 == 1:
			must.Do(t, c.Interrupt(end, ""))
			w.to, w.cloud = c.at.Add(2*time.Minute), true
			c.at = c.at.Add(2 * time.Minute)
		case k%3 == 0:
			must.Do(t, c.Terminate(end))
			w.to = c.at
		}
	}
	id := *c.run(t, one("g5.xlarge"))[0].InstanceId // for less than a minute
	twins[id] = &twin{from: c.at.Add(3 * time.Second), to: c.at.Add(10 * time.Second)}
	c.at = c.at.Add(10 * time.Second)
	must.Do(t, c.Terminate(id))
	c.at = c.at.Add(3 * time.Minute)
	free, paid, short := 0, 0, 0
	for _, l := range c.Bill() {
		w := twins[l.Instance]
		from, to := w.from, w.to
		if to.IsZero() {
			to = c.at
		}
		sum := new(big.Rat)
		switch l.Kind {
		case "instance":
			if l.Spot != w.spot {
				t.Errorf("%+v", l)
			}
			if to.Sub(from) < time.Minute {
				to = from.Add(time.Minute)
				short++
			}
			if w.cloud && w.to.Sub(from) < time.Hour {
				to = from
				free++
			}
			for at := from; at.Before(to); at = at.Add(time.Second) {
				price := "1.006"
				if w.spot {
					for _, p := range prices {
						if !p.From.After(at) {
							price = p.USD
						}
					}
				}
				r, _ := new(big.Rat).SetString(price)
				sum.Add(sum, r.Quo(r, big.NewRat(3600, 1)))
			}
			paid++
		case "volume": // 8 GB of gp3 from launch to the end of the shutdown
			from = from.Add(-3 * time.Second)
			if !w.to.IsZero() {
				to = w.to.Add(time.Minute)
			}
			if to.After(c.at) {
				to = c.at
			}
			sum.Mul(big.NewRat(64, 100), big.NewRat(int64(max(to.Sub(from), time.Minute)/time.Second), 30*24*3600))
		case "address":
			sum.Mul(big.NewRat(5, 1000), big.NewRat(int64(max(to.Sub(from), time.Minute)/time.Second), 3600))
		}
		if sum.Cmp(l.USD) != 0 {
			t.Errorf("%s %s of %s: %s, want %s", l.Kind, l.ID, l.Instance, l.USD.FloatString(12), sum.FloatString(12))
		}
	}
	if free == 0 || paid != 41 || short != 1 {
		t.Errorf("the test has %d free, %d paid and %d short ones", free, paid, short)
	}
}

func TestFaults_ReachTheClient(t *testing.T) {
	c := start(t, awstest.Options{})
	ask := func() string {
		_, err := c.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
		return code(err)
	}
	for _, tt := range []struct {
		f    awstest.Fault
		want string
	}{
		{awstest.Fault{Kind: "throttle", Count: 1}, "RequestLimitExceeded"},
		{awstest.Fault{Kind: "error", Count: 1}, "InternalError"},
		{awstest.Fault{Kind: "error", Count: 1, Code: "Unavailable", Status: 503, Action: "DescribeInstances"},
			"Unavailable"},
		{awstest.Fault{Kind: "deny", Count: 1}, "UnauthorizedOperation"},
	} {
		must.Do(t, c.Inject(tt.f))
		if got := ask(); got != tt.want {
			t.Errorf("%+v: %s", tt.f, got)
		}
		if got := ask(); got != "" {
			t.Errorf("after %+v: %s", tt.f, got)
		}
	}
	// After a lost response, the launch is done, and only once with its token.
	must.Do(t, c.Inject(awstest.Fault{Kind: "cut", Action: "RunInstances", Count: 1}))
	in := one("m7i.large")
	in.ClientToken = aws.String("cut")
	if _, err := c.ec2.RunInstances(t.Context(), in); err == nil {
		t.Error("the answer was not lost")
	}
	c.run(t, in)
	must.Do(t, c.Inject(awstest.Fault{Kind: "twice", Action: "RunInstances", Count: 2}))
	c.run(t, in) // with its token: the same instances
	in.ClientToken = nil
	c.run(t, one("m7i.large")) // the SDK makes a token, so the second delivery is the same, too
	if got := get[*ec2.DescribeInstancesOutput](t)(c.ec2.DescribeInstances(t.Context(),
		nil)); len(got.Reservations) != 2 {
		t.Errorf("%d reservations", len(got.Reservations))
	}
	for _, skewed := range []func(){func() { c.Skew(10 * time.Minute) }, c.Clear} {
		skewed() // the SDK reads the cloud's clock from its response, and signs with that from then on
		if first, then := ask(), ask(); first != "RequestExpired" || then != "" {
			t.Errorf("with another clock: %q, %q", first, then)
		}
	}
	if err := c.Inject(awstest.Fault{Kind: "sunshine"}); err == nil {
		t.Error("an unknown fault was accepted")
	}
	for _, want := range []string{"UnfulfillableCapacity", "InsufficientInstanceCapacity"} {
		must.Do(t, c.Refuse(catalog.Pool{Type: "m7i.large"}, want, 1))
		if _, err := c.ec2.RunInstances(t.Context(), one("m7i.large")); code(err) != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	c.BreakLaunch("Server.InternalError")
	i := c.run(t, one("m7i.large"))[0]
	if got := c.see(t, *i.InstanceId); got.State.Name != "terminated" ||
		*got.StateReason.Code != "Server.InternalError" {
		t.Errorf("a broken launch: %+v", got)
	}
}

func TestRequests_UnknownOrUnsignedAreRefused(t *testing.T) {
	c := start(t, awstest.Options{})
	dry := func(o ec2.Options) string {
		_, err := ec2.New(o).RunInstances(t.Context(), &ec2.RunInstancesInput{InstanceType: "m7i.large",
			ImageId:  aws.String(amd),
			MinCount: aws.Int32(1), MaxCount: aws.Int32(1), DryRun: aws.Bool(true)})
		return code(err)
	}
	right := ec2.Options{
		HTTPClient:       awshttp.Client(),
		Region:           "us-east-1",
		BaseEndpoint:     &c.URL,
		RetryMaxAttempts: 1,
		Credentials:      c.keys(),
	}
	if got := dry(right); got != "DryRunOperation" {
		t.Errorf("dry run: %s", got)
	}
	wrong := right
	wrong.Credentials = credentials.NewStaticCredentialsProvider(c.Key, "another", "")
	if got := dry(wrong); got != "AuthFailure" {
		t.Errorf("wrong secret: %s", got)
	}
	wrong.Credentials = credentials.NewStaticCredentialsProvider("AKIANOBODY", c.Secret, "")
	if got := dry(wrong); got != "AuthFailure" {
		t.Errorf("wrong key: %s", got)
	}
	_, err := c.ec2.CopyImage(t.Context(), &ec2.CopyImageInput{Name: aws.String("a"), SourceImageId: aws.String(amd),
		SourceRegion: aws.String("us-east-1")})
	if code(err) != "InvalidAction" {
		t.Errorf("unknown action: %v", err)
	}
	in := one("m7i.large")
	in.KernelId = aws.String("aki-1")
	if _, err = c.ec2.RunInstances(t.Context(), in); code(err) != "UnknownParameter" {
		t.Errorf("unknown parameter: %v", err)
	}
	_, err = c.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("weather"), Values: []string{"a"}}}})
	if code(err) != "InvalidParameterValue" {
		t.Errorf("unknown filter: %v", err)
	}
	if got := c.Left(); len(got) != 0 {
		t.Errorf("made all the same: %+v", got)
	}
}

func TestRunInstances_RefusesAsDocumented(t *testing.T) {
	c := start(t, awstest.Options{Quotas: map[string]int{"L-DB2E81BA": 4, "L-3819A6DF": 4},
		Capacity: map[catalog.Pool]int{{Type: "p5.48xlarge", Zone: "us-east-1a"}: 0, {Type: "p5.48xlarge",
			Zone: "us-east-1b"}: 0,
			{Type: "p5.48xlarge", Zone: "us-east-1c"}: 0}})
	two := func(in *ec2.RunInstancesInput) *ec2.RunInstancesInput {
		in.MinCount, in.MaxCount = aws.Int32(2), aws.Int32(2)
		return in
	}
	wrongArch, noImage, zone, group, subnet := one("c7g.xlarge"), one("m7i.large"), one("m7i.large"), one("m7i.large"),
		one("m7i.large")
	noImage.ImageId = aws.String("ami-0123")
	zone.Placement = &types.Placement{AvailabilityZone: aws.String("eu-west-1a")}
	group.SecurityGroupIds = []string{"sg-01234567"}
	subnet.SubnetId = aws.String("subnet-01234567")
	for want, in := range map[string]*ec2.RunInstancesInput{"InsufficientInstanceCapacity": one("p5.48xlarge"),
		"VcpuLimitExceeded": two(one("g5.xlarge")), "MaxSpotInstanceCountExceeded": two(spot("g5.xlarge", "")),
		"SpotMaxPriceTooLow": spot("g5.xlarge", "0.01"), "InvalidAMIID.NotFound": noImage, "InvalidParameterValue": wrongArch,
		"InvalidParameterValue ": zone, "InvalidGroup.NotFound": group, "InvalidSubnetID.NotFound": subnet} {
		if _, err := c.ec2.RunInstances(t.Context(), in); code(err) != strings.TrimSpace(want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	if got := c.Left(); len(got) != 0 {
		t.Errorf("made all the same: %+v", got)
	}
}

func TestSession_FollowsItsPolicy(t *testing.T) {
	c := start(t, awstest.Options{})
	client := sts.New(
		sts.Options{HTTPClient: awshttp.Client(), Region: "us-east-1", BaseEndpoint: &c.URL, Credentials: c.keys()},
	)
	who := get[*sts.GetCallerIdentityOutput](t)(client.GetCallerIdentity(t.Context(), nil))
	if *who.Account != "123456789012" {
		t.Errorf("%+v", who)
	}
	out := get[*sts.AssumeRoleOutput](t)(client.AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(
			"arn:aws:iam::123456789012:role/scrimp",
		), RoleSessionName: aws.String("s"), Policy: aws.String(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:Describe*","Resource":"*"}]}`)}))
	k := out.Credentials
	inside := ec2.New(
		ec2.Options{HTTPClient: awshttp.Client(), Region: "us-east-1", BaseEndpoint: &c.URL, RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(
				*k.AccessKeyId,
				*k.SecretAccessKey,
				*k.SessionToken,
			)},
	)
	if _, err := inside.DescribeInstances(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := inside.RunInstances(t.Context(), one("m7i.large")); code(err) != "UnauthorizedOperation" {
		t.Errorf("%v", err)
	}
	_, err := client.AssumeRole(
		t.Context(),
		&sts.AssumeRoleInput{RoleArn: aws.String("arn:aws:iam::123456789012:role/scrimp"),
			RoleSessionName: aws.String(
				"s",
			), Policy: aws.String(`{"Statement":[{"Effect":"Allow","Action":"*","Resource":"*",` +
				`"Condition":{"Bool":{"aws:SecureTransport":"true"}}}]}`)},
	)
	if code(err) != "MalformedPolicyDocument" {
		t.Errorf("a policy it cannot evaluate: %v", err)
	}
}

func TestServices_ReturnPricesPlansAndQuotas(t *testing.T) {
	c := start(t, awstest.Options{Page: 4, Quotas: map[string]int{"L-DB2E81BA": 64}})
	client := pricing.New(
		pricing.Options{
			HTTPClient:   awshttp.Client(),
			Region:       "us-east-1",
			BaseEndpoint: &c.URL,
			Credentials:  c.keys(),
		},
	)
	found := map[string]string{}
	pages := pricing.NewGetProductsPaginator(client, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"),
		Filters: []ptypes.Filter{{Type: ptypes.FilterTypeTermMatch, Field: aws.String("regionCode"),
			Value: aws.String("us-east-1")}}})
	for pages.HasMorePages() {
		page := get[*pricing.GetProductsOutput](t)(pages.NextPage(t.Context()))
		for _, text := range page.PriceList {
			var p struct {
				Product struct{ Attributes map[string]string }
				Terms   struct {
					OnDemand map[string]struct {
						PriceDimensions map[string]struct{ PricePerUnit map[string]string }
					}
				}
			}
			must.Do(t, json.Unmarshal([]byte(text), &p))
			for _, term := range p.Terms.OnDemand {
				for _, d := range term.PriceDimensions {
					found[p.Product.Attributes["instanceType"]] = d.PricePerUnit["USD"]
				}
			}
		}
	}
	if len(found) != len(catalog.Types()) || found["g5.xlarge"] != "1.0060000000" {
		t.Errorf("%v", found)
	}
	c.AddSavingsPlan(awstest.SavingsPlan{ID: "sp-1", Type: "Compute", Commitment: "1.50", Start: c.at,
		End:           c.at.AddDate(1, 0, 0),
		PaymentOption: "No Upfront", Rates: map[string]string{"g5.xlarge us-east-1": "0.7"}})
	plans := savingsplans.New(
		savingsplans.Options{
			HTTPClient:   awshttp.Client(),
			Region:       "us-east-1",
			BaseEndpoint: &c.URL,
			Credentials:  c.keys(),
		},
	)
	list := get[*savingsplans.DescribeSavingsPlansOutput](t)(plans.DescribeSavingsPlans(t.Context(), nil))
	rates := get[*savingsplans.DescribeSavingsPlanRatesOutput](t)(plans.DescribeSavingsPlanRates(t.Context(),
		&savingsplans.DescribeSavingsPlanRatesInput{SavingsPlanId: aws.String("sp-1")}))
	if *list.SavingsPlans[0].Commitment != "1.50" || *rates.SearchResults[0].Rate != "0.7" {
		t.Errorf("%+v %+v", list, rates)
	}
	quotas := servicequotas.New(
		servicequotas.Options{
			HTTPClient:   awshttp.Client(),
			Region:       "us-east-1",
			BaseEndpoint: &c.URL,
			Credentials:  c.keys(),
		},
	)
	q := get[*servicequotas.GetServiceQuotaOutput](t)(quotas.GetServiceQuota(t.Context(),
		&servicequotas.GetServiceQuotaInput{
			ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-DB2E81BA")}))
	n := 0
	for p := servicequotas.NewListServiceQuotasPaginator(quotas, &servicequotas.ListServiceQuotasInput{
		ServiceCode: aws.String("ec2")}); p.HasMorePages(); {
		n += len(get[*servicequotas.ListServiceQuotasOutput](t)(p.NextPage(t.Context())).Quotas)
	}
	if *q.Quota.Value != 64 || n != 13 {
		t.Errorf("%+v, %d quotas", q.Quota, n)
	}
}

func TestControl_AcceptsOrders(t *testing.T) {
	c := start(t, awstest.Options{})
	id := *c.run(t, spot("m7i.large", ""))[0].InstanceId
	post := func(token, name, body string) int {
		r, err := http.NewRequestWithContext(
			t.Context(),
			http.MethodPost,
			c.URL+"/_test/"+name,
			bytes.NewBufferString(body),
		)
		must.Do(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		resp := get[*http.Response](t)(http.DefaultClient.Do(r))
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	for _, tt := range []struct {
		token, name, body string
		want              int
	}{
		{"x", "left", "", 401}, {c.Token, "left", "", 200}, {c.Token, "bill", "", 200}, {c.Token, "weather", "", 404},
		{c.Token, "interrupt", `{"instance":"` + id + `"}`, 200}, {c.Token, "interrupt", `{"instance":"i-0"}`, 409},
		{c.Token, "late", `{"for":"3s"}`, 200}, {c.Token, "late", `{"four":"3s"}`, 400}, {c.Token, "clear", "", 200},
		{c.Token, "instances", "", 200}, {c.Token, "fault", `{"kind":"slow","wait":1,"count":1}`, 200},
	} {
		if got := post(tt.token, tt.name, tt.body); got != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.name, tt.body, got, tt.want)
		}
	}
	c.at = c.at.Add(2 * time.Minute)
	if got := c.see(t, id); got.State.Name != "terminated" {
		t.Errorf("%v", got.State)
	}
}
