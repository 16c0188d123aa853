package advice_test

import (
	"fmt"
	"io"
	"math/big"
	"strings"
	"testing"

	"scrimp/internal/work/advice"
	"scrimp/internal/work/waste"
)

func read(t *testing.T, text string) []advice.Recommendation {
	t.Helper()
	list, err := advice.Read("the-file", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Files in the forms that the clouds document.
const (
	optimizer = "accountId,instanceArn,instanceName,finding,currentInstanceType,recommendations_count,recommendationOptions_1_instanceType," +
		"recommendationOptions_1_estimatedMonthlySavings_value,recommendationOptions_1_estimatedMonthlySavings_currency\n" +
		"1,arn:aws:ec2:eu-west-1:1:instance/i-0a1,web,OVER_PROVISIONED,m5.2xlarge,1,m5.xlarge,73.000000000000000001,USD\n" +
		"1,arn:aws:ec2:eu-west-1:1:instance/i-0a2,db,Optimized,m5.large,0,,,\n" +
		"1,arn:aws:ec2:eu-west-1:1:instance/i-0a3,db,UNDER_PROVISIONED,m5.large,1,m5.xlarge,,\n"
	hub = "account_id,action_type,currency_code,current_resource_summary,current_resource_type,estimated_monthly_savings_after_discount," +
		"estimated_monthly_savings_before_discount,recommendation_id,recommended_resource_summary,region,resource_arn\n" +
		"1,Delete,USD,gp2 100GB,EbsVolume,7.3,8,a,Delete volume,us-east-1,arn:aws:ec2:us-east-1:1:volume/vol-01\n" +
		"1,Stop,USD,p3.2xlarge,Ec2Instance,,146,b,,us-east-1,arn:aws:ec2:us-east-1:1:instance/i-0b\n" +
		"1,PurchaseSavingsPlans,USD,,Ec2InstanceSavingsPlans,100,100,c,1 year,us-east-1,\n"
	google = `[{"name":"projects/p/locations/us-central1-a/recommenders/google.compute.instance.IdleResourceRecommender/recommendations/1",
		"description":"Save cost by stopping Idle VM 'v'.","recommenderSubtype":"STOP_VM","stateInfo":{"state":"ACTIVE"},
		"primaryImpact":{"category":"COST","costProjection":{"cost":{"currencyCode":"USD","units":"-50","nanos":-250000000},"duration":"2592000s"}},
		"content":{"operationGroups":[{"operations":[{"action":"test","resource":"//compute.googleapis.com/projects/p/zones/us-central1-a/instances/v",
		"path":"/status","value":"RUNNING"}]}]}},
		{"name":"x/2","recommenderSubtype":"CHANGE_MACHINE_TYPE","primaryImpact":{"category":"COST","costProjection":{"cost":{"currencyCode":"EUR",
		"units":-10}}},"content":{"operationGroups":[{"operations":[{"resource":"//compute.googleapis.com/projects/p/zones/z/instances/w","path":"/machineType",
		"value":"zones/z/machineTypes/e2-medium"}]}]}},
		{"name":"x/3","stateInfo":{"state":"DISMISSED"},"primaryImpact":{"category":"COST"}},{"name":"x/4","primaryImpact":{"category":"SECURITY"}}]`
	azure = "\xef\xbb\xbfCategory,Business Impact,Recommendation,Subscription ID,Subscription Name,Resource Group,Resource Name,Type,Potential Annual Cost Savings," +
		"Potential Cost Savings Currency\n" +
		"Cost,High,Right-size or shutdown underutilized virtual machines,s-1,Main,rg,vm1,Virtual machine,\"1,460.00\",USD\n" +
		"Cost,Medium,Delete unattached disks,s-1,Main,rg,d1,Microsoft.Compute/disks,73,USD\n" +
		"Cost,High,Consider virtual machine reserved instances to save,s-1,Main,,Main,Subscription,730,USD\n" +
		"Security,High,Enable MFA,s-1,Main,,x,Subscription,,\n"
)

// Each recommendation has one action, its saving in a month of 30 days, a command that changes nothing, and the one that does
// it.
func TestRead_FilesOfClouds(t *testing.T) {
	const none = "provider's console"
	for _, x := range []struct {
		file, resource string
		action         waste.Action
		saving         string // plain arithmetic below
		check, command string
	}{
		{optimizer, "i-0a1", waste.Shrink, "73*720/730", "modify-instance-attribute --instance-id i-0a1 --instance-type Value=m5.xlarge --region eu-west-1 --dry-run",
			"Value=m5.xlarge --region eu-west-1"},
		{optimizer, "i-0a3", waste.Keep, "", "", none},
		{hub, "i-0b", waste.Stop, "146*720/730", "stop-instances --instance-ids i-0b --region us-east-1 --dry-run", "aws ec2 stop-instances --instance-ids i-0b"},
		{hub, "vol-01", waste.Delete, "7.3*720/730", "delete-volume --volume-id vol-01 --region us-east-1 --dry-run", "aws ec2 delete-volume"},
		{hub, "", waste.Keep, "100*720/730", "", "scrimp commit plan"},
		{google, "v", waste.Stop, "50.25*1/1", "instances describe v --zone us-central1-a --project p", "gcloud compute instances stop v --zone us-central1-a --project p"},
		{google, "w", waste.Shrink, "10*1/1", "describe w", "set-machine-type w --zone z --project p --machine-type e2-medium"},
		{azure, "vm1", waste.Shrink, "1460*30/365", "list-vm-resize-options --resource-group rg --name vm1 --subscription s-1", "az vm resize"},
		{azure, "d1", waste.Delete, "73*30/365", "az disk show --resource-group rg --name d1", "az disk delete"},
		{azure, "Main", waste.Keep, "730*30/365", "", "scrimp commit plan"},
	} {
		found := false
		for _, r := range read(t, x.file) {
			if r.Resource != x.resource {
				continue
			}
			found = true
			if r.Action != x.action || !strings.Contains(r.Check, x.check) || (x.check == "") != (r.Check == "") ||
				!strings.Contains(r.Command, x.command) {
				t.Errorf("%s: %+v", x.resource, r)
			}
			if (x.saving == "") != (r.Saving == nil) {
				t.Errorf("%s saves %v", x.resource, r.Saving)
			} else if r.Saving != nil && r.Saving.String() != plainly(x.saving) {
				t.Errorf("%s saves %s, want %s", x.resource, r.Saving, plainly(x.saving))
			}
		}
		if !found {
			t.Errorf("%s is missing", x.resource)
		}
	}
	for file, want := range map[string]int{optimizer: 2, hub: 3, google: 2, azure: 3} {
		if n := len(read(t, file)); n != want {
			t.Errorf("%d recommendations, want %d", n, want)
		}
	}
}

// plainly computes a*b/c with fractions, and cuts it off at 1e-12.
func plainly(text string) string {
	product, c, _ := strings.Cut(text, "/")
	a, b, _ := strings.Cut(product, "*")
	value := new(big.Rat)
	for i, s := range []string{a, b, c} {
		r, _ := new(big.Rat).SetString(s)
		switch i {
		case 0:
			value = r
		case 1:
			value.Mul(value, r)
		case 2:
			value.Quo(value, r)
		}
	}
	picos := new(big.Int).Quo(new(big.Int).Mul(value.Num(), big.NewInt(1e12)), value.Denom())
	digits := fmt.Sprintf("%013s", picos)
	return strings.TrimSuffix(strings.TrimRight(digits[:len(digits)-12]+"."+digits[len(digits)-12:], "0"), ".")
}

// The total counts each resource once, and leaves out what there is to keep.
func TestTotals(t *testing.T) {
	list := append(read(t, hub), read(t, strings.Replace(hub, "146", "730", 1))...)
	list = append(list, read(t, google)...)
	totals := advice.Totals(list)
	if len(totals) != 2 || totals[0].Currency != "EUR" || totals[0].Saving.String() != "10" ||
		totals[1].Saving.String() != "777.45" { // 7.2 + 720 + 50.25
		t.Errorf("%+v", totals)
	}
	advice.Sort(list)
	if list[0].Resource != "i-0b" || list[0].Saving.String() != "720" {
		t.Errorf("the first is %+v", list[0])
	}
}

// A name from a file is in a command only if a shell reads it as one plain word.
func TestRead_PutsNoShellIntoCommands(t *testing.T) {
	for _, file := range []string{strings.Replace(google, "instances/v", "instances/v;reboot", 1), strings.ReplaceAll(azure, "rg,vm1", "rg,$(reboot)"),
		strings.Replace(hub, "volume/vol-01", "volume/vol-01 && reboot", 1), strings.Replace(google, "machineTypes/e2-medium", "machineTypes/`reboot`", 1),
		strings.Replace(hub, "us-east-1,arn", "'us;reboot',arn", 1), strings.Replace(azure, ",rg,d1", ",--help reboot,d1", 1)} {
		for _, r := range read(t, file) {
			if strings.Contains(r.Command+r.Check, "reboot") {
				t.Errorf("%s / %s", r.Check, r.Command)
			}
		}
	}
}

// endless repeats a text.
type endless struct {
	head, body string
	at         int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.head != "" {
		n := copy(b, e.head)
		e.head = e.head[n:]
		return n, nil
	}
	n := copy(b, e.body[e.at:])
	e.at = (e.at + n) % len(e.body)
	return n, nil
}

// A file that is none of these, is damaged or does not end is refused with its name and the reason.
func TestRead_RefusesOtherFiles(t *testing.T) {
	_, rows, _ := strings.Cut(hub, "\n")
	for want, in := range map[string]io.Reader{
		"is empty":                        strings.NewReader(" \n"),
		"columns are of no":               strings.NewReader("a,b\n1,2\n"),
		"has no list of recommendations":  strings.NewReader(`{"a":1}`),
		"has no name or no primaryImpact": strings.NewReader(`[{"name":"x"}]`),
		"recommendation 1":                strings.NewReader(`[7]`),
		"does not end":                    strings.NewReader(google[:len(google)-1]),
		"line 2: the saving \"many\"":     strings.NewReader(strings.Replace(hub, "7.3", "many", 1)),
		"line 3: the saving 146":          strings.NewReader(strings.Replace(hub, "Stop,USD", "Stop,", 1)),
		"not a span such as":              strings.NewReader(strings.Replace(google, "2592000s", "0s", 1)),
		"invalid number literal":          strings.NewReader(strings.Replace(google, `"-50"`, `"x"`, 1)),
		"read a row":                      strings.NewReader(hub + "1,\"Stop\n"),
		"more than 50000":                 &endless{head: hub, body: rows},
		"longer than 64 MiB":              &endless{head: hub + "1,\"", body: "x"},
	} {
		if list, err := advice.Read("the-file", in); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "the-file") {
			t.Errorf("want %s: %v, %d", want, err, len(list))
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{optimizer, hub, google, azure} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := advice.Read("f", strings.NewReader(string(b)))
		for _, r := range list {
			if err != nil || r.Command == "" || r.Action == "" || r.Saving != nil && !r.Currency.Valid() {
				t.Fatalf("%+v", r)
			}
		}
	})
}
