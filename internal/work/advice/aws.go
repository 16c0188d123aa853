package advice

import (
	"regexp"
	"strings"
	"time"

	"scrimp/internal/work/waste"
)

// awsMonth is AWS's month of 730 hours.
const awsMonth = 730 * time.Hour

// arns lists the columns of Compute Optimizer's exports that name the resource.
var arns = []string{"instancearn", "volumearn", "autoscalinggrouparn", "functionarn", "servicearn", "resourcearn"}

// optimizer converts a row of AWS Compute Optimizer. Resources that it finds optimized are no recommendations.
func optimizer(t *table) (r Recommendation, ok bool, err error) {
	arn := t.get(arns...)
	to := t.get("recommendationoptions1instancetype", "recommendationoptions1configurationvolumetype",
		"recommendationoptions1configurationinstancetype", "recommendationoptions1configurationmemorysize")
	finding := t.get("finding")
	r = Recommendation{Source: "AWS Compute Optimizer", Resource: Last(arn), Type: awsType(arn), Action: waste.Shrink,
		Advice: finding}
	if from := t.get("currentinstancetype", "currentconfigurationvolumetype"); from != "" && to != "" {
		r.Advice += ": " + from + ", to " + to
	}
	switch lower := apart.ReplaceAllString(strings.ToLower(finding), ""); {
	case lower == "optimized" || lower == "unavailable" || lower == "":
		return r, false, nil
	case strings.HasPrefix(lower, "under"):
		r.Action = waste.Keep
	case lower == "idle":
		r.Action = waste.Stop
	}
	err = r.saves(t.get("recommendationoptions1estimatedmonthlysavingsvalue"),
		t.get("recommendationoptions1estimatedmonthlysavingscurrency"), awsMonth)
	if r.Currency == "" && r.Saving == nil {
		r.Currency = "USD"
	}
	r.aws(region(arn), to)
	return r, true, err
}

// hub converts a row of AWS Cost Optimization Hub.
func hub(t *table) (r Recommendation, ok bool, err error) {
	arn, action := t.get("resourcearn"), t.get("actiontype")
	to := t.get("recommendedresourcesummary")
	r = Recommendation{Source: "AWS Cost Optimization Hub", Resource: Last(arn), Type: t.get("currentresourcetype"),
		Action: waste.Keep, Advice: action}
	if from := t.get("currentresourcesummary"); from != "" {
		r.Advice += ": " + from
	}
	if to != "" {
		r.Advice += ", to " + to
	}
	// What a discount leaves is what the bill shows.
	err = r.saves(t.get("estimatedmonthlysavingsafterdiscount", "estimatedmonthlysavingsbeforediscount"),
		t.get("currencycode"), awsMonth)
	switch apart.ReplaceAllString(strings.ToLower(action), "") {
	case "rightsize", "upgrade", "migratetograviton", "scalein":
		r.Action = waste.Shrink
	case "stop":
		r.Action = waste.Stop
	case "delete":
		r.Action = waste.Delete
	case "purchasesavingsplans", "purchasereservedinstances":
		r.buys()
		return r, true, err
	}
	place := t.get("region")
	if place == "" {
		place = region(arn)
	}
	r.aws(place, to)
	return r, true, err
}

// awsType returns the service and kind of an ARN, such as ec2 instance.
func awsType(arn string) string {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) < 6 {
		return ""
	}
	kind, _, _ := strings.Cut(parts[5], "/")
	kind, _, _ = strings.Cut(kind, ":")
	return parts[2] + " " + kind
}

func region(arn string) string {
	if parts := strings.SplitN(arn, ":", 6); len(parts) == 6 {
		return parts[3]
	}
	return ""
}

var instanceType = regexp.MustCompile(`^[a-z0-9-]+\.[a-z0-9-]+$`)

// aws sets the commands for a machine or a volume of EC2: the same with and without --dry-run.
func (r *Recommendation) aws(region, to string) {
	command := ""
	machine, volume := strings.HasPrefix(r.Resource, "i-"), strings.HasPrefix(r.Resource, "vol-")
	words := []string{region, r.Resource}
	switch {
	case machine && r.Action == waste.Shrink && instanceType.MatchString(to): // it must be stopped
		command = "aws ec2 modify-instance-attribute --instance-id " + r.Resource + " --instance-type Value=" + to
	case machine && r.Action == waste.Stop:
		command = "aws ec2 stop-instances --instance-ids " + r.Resource
	case machine && r.Action == waste.Delete:
		command = "aws ec2 terminate-instances --instance-ids " + r.Resource
	case volume && r.Action == waste.Delete:
		command = "aws ec2 delete-volume --volume-id " + r.Resource
	case volume && r.Action == waste.Shrink && plain.MatchString(to) && !strings.Contains(to, "/"):
		command = "aws ec2 modify-volume --volume-id " + r.Resource + " --volume-type " + to
	default:
		r.byHand()
		return
	}
	command += " --region " + region
	r.does(command+" --dry-run", command, words...)
}
