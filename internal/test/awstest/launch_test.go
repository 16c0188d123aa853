//go:build !local

package awstest_test

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"scrimp/internal/lib/awshttp"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/must"
)

const (
	amd = "ami-0000000000000a64a"
	arm = "ami-0000000000000a64b"
)

// cloud is a server whose time the test sets.
type cloud struct {
	*awstest.Server
	at  time.Time
	ec2 *ec2.Client
}

func start(t *testing.T, o awstest.Options) *cloud {
	t.Helper()
	c := &cloud{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	if o.Now == nil {
		o.Now = func() time.Time { return c.at }
	}
	s, err := awstest.New(o)
	must.Do(t, err)
	t.Cleanup(s.Close)
	c.Server = s
	c.ec2 = ec2.New(
		ec2.Options{HTTPClient: awshttp.Client(), Region: "us-east-1", BaseEndpoint: &s.URL, RetryMaxAttempts: 1,
			Credentials: credentials.NewStaticCredentialsProvider(s.Key, s.Secret, "")},
	)
	return c
}

// code returns the error code of a response; "": no error.
func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func (c *cloud) run(t *testing.T, in *ec2.RunInstancesInput) []types.Instance {
	t.Helper()
	out, err := c.ec2.RunInstances(t.Context(), in)
	must.Do(t, err)
	return out.Instances
}

func script(text string) *string {
	return aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n" + text)))
}

func one(typ string) *ec2.RunInstancesInput {
	return &ec2.RunInstancesInput{
		InstanceType: types.InstanceType(typ),
		ImageId:      aws.String(amd),
		MinCount:     aws.Int32(1),
		MaxCount:     aws.Int32(1),
	}
}

func spot(typ, most string) *ec2.RunInstancesInput {
	in := one(typ)
	in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	if most != "" {
		in.InstanceMarketOptions.SpotOptions = &types.SpotMarketOptions{MaxPrice: &most}
	}
	return in
}

func (c *cloud) see(t *testing.T, id string) types.Instance {
	t.Helper()
	out, err := c.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	must.Do(t, err)
	return out.Reservations[0].Instances[0]
}

func TestInstance_RunsAndEndsAsDocumented(t *testing.T) {
	c := start(t, awstest.Options{Spans: awstest.Spans{Pending: 5 * time.Second, Ending: 30 * time.Second}})
	in := one("g5.xlarge")
	in.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n")))
	in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeInstance,
		Tags: []types.Tag{{Key: aws.String("job"), Value: aws.String("a")}}}}
	i := c.run(t, in)[0]
	if i.State.Name != types.InstanceStateNamePending || i.PrivateIpAddress == nil || len(i.NetworkInterfaces) != 1 ||
		len(i.BlockDeviceMappings) != 1 || *i.Placement.AvailabilityZone != "us-east-1a" || !i.LaunchTime.Equal(c.at) {
		t.Errorf("launched %+v", i)
	}
	c.at = c.at.Add(5 * time.Second)
	if got := c.see(t, *i.InstanceId); got.State.Name != types.InstanceStateNameRunning || *got.Tags[0].Value != "a" {
		t.Errorf("after its pending time: %+v", got)
	}
	out, err := c.ec2.TerminateInstances(
		t.Context(),
		&ec2.TerminateInstancesInput{InstanceIds: []string{*i.InstanceId}},
	)
	must.Do(t, err)
	change := out.TerminatingInstances[0]
	if change.PreviousState.Name != "running" || change.CurrentState.Name != "shutting-down" ||
		*change.CurrentState.Code != 32 {
		t.Errorf("terminated: %+v", change)
	}
	c.at = c.at.Add(30 * time.Second)
	got := c.see(t, *i.InstanceId)
	if got.State.Name != "terminated" || *got.StateReason.Code != "Client.UserInitiatedShutdown" ||
		*got.StateTransitionReason != "User initiated (2026-03-01 12:00:05 GMT)" {
		t.Errorf("ended: %+v %v", got, *got.StateTransitionReason)
	}
	c.at = c.at.Add(time.Hour)
	_, err = c.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{*i.InstanceId}})
	if code(err) != "InvalidInstanceID.NotFound" {
		t.Errorf("an hour later: %v", err)
	}
}

func TestRunInstances_LaunchesOncePerToken(t *testing.T) {
	c := start(t, awstest.Options{})
	in := one("m7i.large")
	in.ClientToken = aws.String("job-1")
	first := *c.run(t, in)[0].InstanceId
	if again := *c.run(t, in)[0].InstanceId; again != first {
		t.Errorf("the same request launched %s and %s", first, again)
	}
	in.InstanceType = "c7i.xlarge"
	if _, err := c.ec2.RunInstances(t.Context(), in); code(err) != "IdempotentParameterMismatch" {
		t.Errorf("another request with the token: %v", err)
	}
	in.InstanceType = "m7i.large"
	if _, err := c.ec2.TerminateInstances(t.Context(),
		&ec2.TerminateInstancesInput{InstanceIds: []string{first}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ec2.RunInstances(t.Context(), in); code(err) != "IdempotentInstanceTerminated" {
		t.Errorf("after its end: %v", err)
	}
}

func TestCreateFleet_ReportsErrorsPerOverride(t *testing.T) {
	c := start(t, awstest.Options{Capacity: map[catalog.Pool]int{
		{Type: "g5.xlarge", Zone: "us-east-1a", Spot: true}: 1, {Type: "g6.xlarge", Zone: "us-east-1a", Spot: true}: 0}})
	_, err := c.ec2.CreateLaunchTemplate(
		t.Context(),
		&ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("worker"),
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(amd)}},
	)
	must.Do(t, err)
	in := &ec2.CreateFleetInput{Type: types.FleetTypeInstant, ClientToken: aws.String("t1"),
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String("worker"),
				Version:            aws.String("$Default"),
			},
			Overrides: []types.FleetLaunchTemplateOverridesRequest{
				{InstanceType: "g6.xlarge", AvailabilityZone: aws.String("us-east-1a")},
				{InstanceType: "g5.xlarge", AvailabilityZone: aws.String("us-east-1a")}}}},
		SpotOptions: &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(2),
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeSpot},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance,
			Tags: []types.Tag{{Key: aws.String("job"), Value: aws.String("f")}}}}}
	for range 2 { // with its token it is the same fleet
		out, err := c.ec2.CreateFleet(t.Context(), in)
		must.Do(t, err)
		if len(out.Instances) != 1 || len(out.Instances[0].InstanceIds) != 1 ||
			out.Instances[0].InstanceType != "g5.xlarge" ||
			out.Instances[0].Lifecycle != "spot" {
			t.Fatalf("granted %+v", out.Instances)
		}
		if len(out.Errors) != 2 || *out.Errors[0].ErrorCode != "InsufficientInstanceCapacity" ||
			out.Errors[0].LaunchTemplateAndOverrides.Overrides.AvailabilityZone == nil {
			t.Errorf("errors %+v", out.Errors)
		}
	}
	page, err := c.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: aws.String("tag:job"), Values: []string{"f"}}}})
	if err != nil || len(page.Reservations) != 1 || page.Reservations[0].Instances[0].InstanceLifecycle != "spot" {
		t.Errorf("by tag: %v %+v", err, page)
	}
	in.ClientToken, in.SpotOptions.MinTargetCapacity = aws.String("t2"), aws.Int32(2)
	in.SpotOptions.SingleInstanceType = aws.Bool(true)
	out, err := c.ec2.CreateFleet(t.Context(), in)
	if err != nil || len(out.Instances) != 0 || len(out.Errors) == 0 {
		t.Errorf("below the minimum: %v %+v", err, out)
	}
}

func TestLate_InstancesAreUnknownAtFirst(t *testing.T) {
	c := start(t, awstest.Options{})
	c.Late(3 * time.Second)
	id := *c.run(t, one("m7i.large"))[0].InstanceId
	_, err := c.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	if code(err) != "InvalidInstanceID.NotFound" {
		t.Errorf("too early: %v", err)
	}
	c.at = c.at.Add(3 * time.Second)
	if got := c.see(t, id); got.State.Name != "running" {
		t.Errorf("later: %v", got.State)
	}
}
