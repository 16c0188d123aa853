//go:build !local

package aws

import (
	"context"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
)

// rentInBlock rents machines in a Capacity Block, all or none; a fleet would start as many as fit. A refused request
// does not use up the token. Sources: docs.aws.amazon.com, Amazon EC2 user guide, "Tutorial: Configure your EC2 Fleet
// to launch instances into Capacity Blocks", and API reference, RunInstances, MinCount.
func (d *Driver) rentInBlock(ctx context.Context, a *account.Client, q *engine.Request, r *request, s *sale, t template,
	group string,
) ([]string, error) {
	out, err := a.EC2.RunInstances(ctx, d.inBlock(q, r, s, t, group), func(o *ec2.Options) {
		o.RetryMaxAttempts = 1 // each answer counts
	})
	switch code := account.CodeOf(err); {
	case err == nil:
	case code == "IdempotentParameterMismatch":
		return nil, d.mismatched(r, err)
	default:
		if d.unanswered(err) {
			r.unsure = d.now()
		}
		return nil, d.noRoom(q.Offer, orRefused(d, err))
	}
	r.asked++
	r.mismatch, r.unsure = time.Time{}, time.Time{}
	var ids []string
	for n := range out.Instances {
		ids = append(ids, sdk.ToString(out.Instances[n].InstanceId))
	}
	return d.grants(ids), nil
}

func (d *Driver) inBlock(q *engine.Request, r *request, s *sale, t template, group string) *ec2.RunInstancesInput {
	machines := sdk.Int32(int32(q.Machines()))
	in := &ec2.RunInstancesInput{MinCount: machines, MaxCount: machines, ClientToken: sdk.String(token(q.Key, r.asked)),
		InstanceType: types.InstanceType(s.kind.Name), LaunchTemplate: &types.LaunchTemplateSpecification{
			LaunchTemplateName: sdk.String(t.name), Version: sdk.String("$Default")},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: tagsOf(d.tagsOfMachines(q, s))},
			// The tags of a request replace those of its template.
			{ResourceType: types.ResourceTypeVolume, Tags: tagsOf(d.owner(q))},
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: tagsOf(d.owner(q))}}}
	if s.held.place != "" {
		in.Placement = &types.Placement{GroupName: &s.held.place}
	}
	if d.with.PublicIP == nil {
		in.SubnetId = &s.zone.Subnet
		return in
	}
	in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: sdk.Int32(0),
		DeleteOnTermination: sdk.Bool(true), AssociatePublicIpAddress: d.with.PublicIP, Groups: []string{group},
		SubnetId: &s.zone.Subnet}} // the interface carries the subnet
	return in
}
