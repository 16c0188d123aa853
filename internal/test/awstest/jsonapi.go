package awstest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

// A SavingsPlan is a savings plan of the account. Rates are for EC2 usage under it.
type SavingsPlan struct {
	ID, ARN, Type      string // Compute or EC2Instance
	Commitment         string // USD per hour
	Region, Family     string // of type EC2Instance
	PaymentOption      string
	Start, End         time.Time
	State              string
	Rates              map[string]string // USD per hour by "type region"
	Upfront, Recurring string
}

// AddSavingsPlan adds a savings plan to the account.
func (s *Server) AddSavingsPlan(p SavingsPlan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.State == "" {
		p.State = "active"
	}
	s.plans = append(s.plans, p)
}

type object = map[string]any

// jsonServices handles the services with JSON requests.
func (s *Server) jsonServices(w http.ResponseWriter, r *http.Request, who caller, body []byte) {
	in := object{}
	if err := json.Unmarshal(body, &in); err != nil && len(body) > 0 {
		s.answerError(w, who.service, bad("SerializationException", "the body is not JSON: %v", err))
		return
	}
	action := strings.TrimPrefix(r.URL.Path, "/")
	if _, target, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		action = target
	}
	do, known := services[who.service+"."+action]
	if !known {
		s.answerError(w, who.service, refuse(http.StatusNotFound, "UnknownOperationException", "%s is not known", action))
		return
	}
	m := s.meet(action)
	if m.down {
		cut(w)
		return
	}
	if m.err != nil {
		if m.throttled {
			m.err = bad("ThrottlingException", "Rate exceeded")
		}
		s.answerError(w, who.service, m.err)
		return
	}
	c := &call{params: newParams(nil), s: s, caller: who, action: action, region: who.region}
	out, err := func() (object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		c.now = s.now()
		s.advance(c.now)
		if err := c.allowed(); err != nil {
			return nil, refuse(http.StatusBadRequest, "AccessDeniedException", "User is not authorized to perform: %s:%s",
				who.service, action)
		}
		ask := &ask{in: in, used: map[string]bool{}}
		out, err := do(c, ask)
		return out, first(ask.end(), err)
	}()
	if m.cut {
		cut(w)
		return
	}
	if err != nil {
		s.answerError(w, who.service, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out) // the client may have left
}

// An ask reads the members of a JSON request, and refuses unread ones.
type ask struct {
	in   object
	used map[string]bool
}

func (a *ask) str(name string) string {
	a.used[name] = true
	v, _ := a.in[name].(string)
	return v
}

func (a *ask) number(name string, otherwise int) int {
	a.used[name] = true
	if v, ok := a.in[name].(float64); ok {
		return int(v)
	}
	return otherwise
}

func (a *ask) list(name string) (out []any) {
	a.used[name] = true
	out, _ = a.in[name].([]any)
	return out
}

func (a *ask) end() error {
	for k := range a.in {
		if !a.used[k] {
			return bad("ValidationException", "member %q is not known", k)
		}
	}
	return nil
}

var services = map[string]func(*call, *ask) (object, error){
	"pricing.GetProducts":                   getProducts,
	"savingsplans.DescribeSavingsPlans":     describeSavingsPlans,
	"savingsplans.DescribeSavingsPlanRates": describeSavingsPlanRates,
	"servicequotas.GetServiceQuota":         getServiceQuota,
	"servicequotas.ListServiceQuotas":       listServiceQuotas,
}

// some cuts a list at a position that the token holds.
func some[T any](list []T, size int, token string) (out []T, next string, err error) {
	from := 0
	if token != "" {
		if from, err = strconv.Atoi(strings.TrimPrefix(token, "at-")); err != nil || from > len(list) {
			return nil, "", bad("InvalidNextTokenException", "The token %q is invalid", token)
		}
	}
	to := min(len(list), from+size)
	if to < len(list) {
		next = fmt.Sprintf("at-%d", to)
	}
	return list[from:to], next, nil
}

// getProducts returns the price list of on-demand instances, a JSON text per product. Sources: "Finding services and
// products using the AWS Price List Query API", and the fields of the AmazonEC2 price list.
func getProducts(c *call, a *ask) (object, error) {
	service, token, size := a.str("ServiceCode"), a.str("NextToken"), a.number("MaxResults", 100)
	if format := a.str("FormatVersion"); format != "" && format != "aws_v1" {
		return nil, bad("InvalidParameterException", "FormatVersion %q is not aws_v1", format)
	}
	if service != "AmazonEC2" {
		return nil, bad("InvalidParameterException", "This cloud has the price list of AmazonEC2 only, not of %q", service)
	}
	want := map[string]string{}
	for _, f := range a.list("Filters") {
		one, _ := f.(object)
		if one["Type"] != "TERM_MATCH" {
			return nil, bad("InvalidParameterException", "filter type %v is not TERM_MATCH", one["Type"])
		}
		want[fmt.Sprint(one["Field"])] = fmt.Sprint(one["Value"])
	}
	type product struct {
		t          catalog.Type
		region     string
		attributes map[string]string
	}
	var list []product
	for _, t := range c.s.o.Types {
		regions := map[string]bool{}
		for _, z := range c.s.o.Zones {
			if !t.In(z.Name) || regions[z.Region] || want["regionCode"] != "" && z.Region != want["regionCode"] {
				continue
			}
			regions[z.Region] = true
			attributes := t.Attributes(z.Region)
			if !slices.ContainsFunc(keysOf(want), func(k string) bool { return attributes[k] != want[k] }) {
				list = append(list, product{t, z.Region, attributes})
			}
		}
	}
	chosen, next, err := some(list, min(size, 100, c.s.o.Page), token)
	texts := []string{}
	for _, p := range chosen {
		texts = append(texts, c.product(p.t, p.region, p.attributes))
	}
	out := object{"FormatVersion": "aws_v1", "PriceList": texts}
	if next != "" {
		out["NextToken"] = next
	}
	return out, err
}

func keysOf(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (c *call) product(t catalog.Type, region string, attributes map[string]string) string {
	sku := strings.ToUpper(hash([]byte(t.Name + region))[:16])
	term, rate := sku+".JRTCKXETXF", sku+".JRTCKXETXF.6YS6EN2CT7"
	price := c.s.onDemand(t, region)
	text, _ := json.Marshal(object{"product": object{"productFamily": "Compute Instance", "attributes": attributes,
		"sku": sku},
		"serviceCode": "AmazonEC2", "version": "20260301000000", "publicationDate": "2026-03-01T00:00:00Z",
		"terms": object{"OnDemand": object{term: object{"sku": sku, "offerTermCode": "JRTCKXETXF",
			"effectiveDate": "2026-03-01T00:00:00Z", "termAttributes": object{}, "priceDimensions": object{rate: object{
				"rateCode": rate, "unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": []string{},
				"description": fmt.Sprintf("$%s per On Demand Linux %s Instance Hour", short(price), t.Name),
				"pricePerUnit": object{"USD": fmt.Sprintf("%d.%010d", price/1e12,
					price%1e12/100)}}}}}}}) // values of these types encode
	return string(text)
}

func describeSavingsPlans(c *call, a *ask) (object, error) {
	ids, arns, states, token, size := a.list("savingsPlanIds"), a.list("savingsPlanArns"), a.list("states"),
		a.str("nextToken"),
		a.number("maxResults", 1000)
	if len(a.list("filters")) > 0 {
		return nil, bad("ValidationException", "filters are not built")
	}
	list := []object{}
	for _, p := range c.s.plans {
		if ids != nil && !slices.Contains(ids, any(p.ID)) || arns != nil && !slices.Contains(arns, any(p.ARN)) ||
			states != nil && !slices.Contains(states, any(p.State)) {
			continue
		}
		list = append(list, object{"savingsPlanId": p.ID, "savingsPlanArn": p.ARN, "savingsPlanType": p.Type,
			"state":      p.State,
			"commitment": p.Commitment, "currency": "USD", "paymentOption": p.PaymentOption, "region": p.Region,
			"ec2InstanceFamily": p.Family, "productTypes": []string{"EC2"}, "start": p.Start.UTC().Format(time.RFC3339),
			"end": p.End.UTC().Format(time.RFC3339), "termDurationInSeconds": int(p.End.Sub(p.Start).Seconds()),
			"upfrontPaymentAmount": p.Upfront, "recurringPaymentAmount": p.Recurring})
	}
	chosen, next, err := some(list, min(size, c.s.o.Page), token)
	return object{"savingsPlans": chosen, "nextToken": next}, err
}

func describeSavingsPlanRates(c *call, a *ask) (object, error) {
	id, token, size := a.str("savingsPlanId"), a.str("nextToken"), a.number("maxResults", 1000)
	want := map[string][]any{}
	for _, f := range a.list("filters") {
		one, _ := f.(object)
		want[fmt.Sprint(one["name"])], _ = one["values"].([]any)
	}
	k := slices.IndexFunc(c.s.plans, func(p SavingsPlan) bool { return p.ID == id })
	if k < 0 {
		return nil, refuse(http.StatusNotFound, "ResourceNotFoundException", "savings plan %s does not exist", id)
	}
	list := []object{}
	for _, key := range keysOf(c.s.plans[k].Rates) {
		typ, region, _ := strings.Cut(key, " ")
		family, _, _ := strings.Cut(typ, ".")
		have := map[string]string{"region": region, "instanceType": typ, "instanceFamily": family,
			"productDescription": "Linux/UNIX", "tenancy": "shared", "productType": "EC2", "serviceCode": "AmazonEC2",
			"usageType": "BoxUsage:" + typ, "operation": "RunInstances"}
		fits := true
		for name, values := range want {
			if have[name] == "" {
				return nil, bad("ValidationException", "filter %q is not known", name)
			}
			fits = fits && slices.Contains(values, any(have[name]))
		}
		if !fits {
			continue
		}
		var properties []object
		for _, name := range []string{"region", "instanceType", "instanceFamily", "productDescription", "tenancy"} {
			properties = append(properties, object{"name": name, "value": have[name]})
		}
		list = append(list, object{"rate": c.s.plans[k].Rates[key], "currency": "USD", "unit": "Hrs", "productType": "EC2",
			"serviceCode": "AmazonEC2", "usageType": "BoxUsage:" + typ, "operation": "RunInstances", "properties": properties})
	}
	chosen, next, err := some(list, min(size, c.s.o.Page), token)
	return object{"savingsPlanId": id, "searchResults": chosen, "nextToken": next}, err
}

func (c *call) showQuota(code string) object {
	value, limited := c.s.quotas[code]
	if !limited {
		value = 1_000_000 // real accounts always have a finite quota
	}
	return object{"ServiceCode": "ec2", "ServiceName": "Amazon Elastic Compute Cloud (Amazon EC2)", "QuotaCode": code,
		"QuotaName": catalog.QuotaNames[code], "Value": float64(value), "Unit": "None", "Adjustable": true,
		"GlobalQuota": false,
		"QuotaArn":    fmt.Sprintf("arn:aws:servicequotas:%s:%s:ec2/%s", c.region, c.s.o.Account, code)}
}

func getServiceQuota(c *call, a *ask) (object, error) {
	service, code := a.str("ServiceCode"), a.str("QuotaCode")
	if catalog.QuotaNames[code] == "" || service != "ec2" {
		return nil, bad("NoSuchResourceException", "The request failed because the specified service quota %s %s does "+
			"not exist.",
			service, code)
	}
	return object{"Quota": c.showQuota(code)}, nil
}

func listServiceQuotas(c *call, a *ask) (object, error) {
	service, token, size := a.str("ServiceCode"), a.str("NextToken"), a.number("MaxResults", 100)
	if service != "ec2" {
		return nil, bad("NoSuchResourceException", "The request failed because the service %q does not exist.", service)
	}
	list := []object{}
	for _, code := range keysOf(catalog.QuotaNames) {
		list = append(list, c.showQuota(code))
	}
	chosen, next, err := some(list, min(size, 100, c.s.o.Page), token)
	out := object{"Quotas": chosen}
	if next != "" {
		out["NextToken"] = next
	}
	return out, err
}
