//go:build !local

// Package prepare creates what a launch needs in EC2 besides machines (security group, launch template, placement
// group), and builds the requests for machines.
package prepare

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"sync"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/engine/aws/sale"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
)

// Template is an existing launch template.
type Template struct{ id, name string }

// Preparer creates what a launch needs in EC2 besides machines, once each: launch templates, security groups and
// placement groups.
type Preparer struct {
	engine string // its name
	with   *setting.With
	Server string // the server's address, as given to agents
	Build  string // first digits of the hash of the program that machines download

	mu        sync.Mutex
	templates map[string]Template // by content
	groups    map[string]string   // security groups by network and name
}

// New returns the preparer of an engine for which nothing is known to exist.
func New(engine string, w *setting.With) *Preparer {
	return &Preparer{engine: engine, with: w, templates: map[string]Template{}, groups: map[string]string{}}
}

// tagsOfMachines returns the tags by which any server finds what a request has rented.
func (p *Preparer) tagsOfMachines(q *engine.Request, s *sale.Sale) map[string]string {
	tags := tag.Owner(p.engine, q)
	maps.Copy(tags, q.Tags)
	tags[tag.Key], tags[tag.Offer], tags[tag.Nodes] = q.Key, string(q.Offer), strconv.Itoa(q.Machines())
	if s.Held != nil {
		tags[tag.Reservation] = s.Held.ID
	}
	return tags
}

// HasTemplate reports whether this server has used a template.
func (p *Preparer) HasTemplate(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, used := p.templates[name]
	return used
}

// TemplateOf returns the launch template for machines of an image and group. Its name is a digest of its content, so
// that it is created once, and again after any change.
func (p *Preparer) TemplateOf(ctx context.Context, a *account.Client, q *engine.Request, s *sale.Sale,
	group string) (Template, error) {
	data := p.templateData(q, s, group)
	text, err := json.Marshal(data)
	if err != nil {
		return Template{}, fmt.Errorf("write a launch template: %w", err)
	}
	sum := sha256.Sum256(text)
	name := "scrimp-" + p.engine + "-" + hex.EncodeToString(sum[:8])
	p.mu.Lock()
	known, has := p.templates[name]
	p.mu.Unlock()
	if has {
		return known, nil
	}
	out, err := a.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name,
		LaunchTemplateData: data, ClientToken: &name,
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tag.Of(tag.Owner(p.engine, q))},
		}})
	t := Template{name: name}
	switch {
	case err == nil:
		t.id = sdk.ToString(out.LaunchTemplate.LaunchTemplateId)
	case account.CodeOf(err) == "InvalidLaunchTemplateName.AlreadyExistsException":
	default:
		return t, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.templates[name] = t
	return t, nil
}

// Forget drops a template that no longer exists.
func (p *Preparer) Forget(t Template) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.templates, t.name)
}

// OwnGroupGone reports whether a code says that a security group of scrimp's no longer exists. It then forgets all
// groups, so that the next launch creates them again.
func (p *Preparer) OwnGroupGone(code string) bool {
	if code != "InvalidGroup.NotFound" || p.with.SecurityGroup != "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.groups)
	return true
}

func (p *Preparer) templateData(q *engine.Request, s *sale.Sale, group string) *types.RequestLaunchTemplateData {
	owner := tag.Of(tag.Owner(p.engine, q))
	yes := sdk.Bool(true)
	data := &types.RequestLaunchTemplateData{
		ImageId:                           sdk.String(s.Image.ID),
		UserData:                          sdk.String(p.userData(q.Env["SCRIMP_TASK_USER"])),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: types.LaunchTemplateInstanceMetadataEndpointStateEnabled,
			HttpTokens:   types.LaunchTemplateHttpTokensStateRequired, HttpPutResponseHopLimit: sdk.Int32(1)},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: sdk.String(s.Image.Root),
			Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{DeleteOnTermination: yes, Encrypted: yes,
				VolumeSize: sdk.Int32(int32(p.with.DiskSize / size.GiB)), VolumeType: types.VolumeTypeGp3}}},
	}
	if p.with.PublicIP == nil {
		data.SecurityGroupIds = []string{group}
	} else {
		data.NetworkInterfaces = []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			{DeviceIndex: sdk.Int32(0),
				DeleteOnTermination: yes, AssociatePublicIpAddress: p.with.PublicIP, Groups: []string{group}},
		}
	}
	p.holds(data, s)
	for _, r := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume,
		types.ResourceTypeNetworkInterface} {
		data.TagSpecifications = append(data.TagSpecifications,
			types.LaunchTemplateTagSpecificationRequest{ResourceType: r, Tags: owner})
	}
	return data
}

// GroupOf returns the security group of machines: the configured one, or one without inbound access; for a gang, one
// whose members reach each other.
func (p *Preparer) GroupOf(ctx context.Context, a *account.Client, q *engine.Request, vpc string) (string, error) {
	if p.with.SecurityGroup != "" {
		return p.with.SecurityGroup, nil
	}
	name, about := "scrimp-"+p.engine, "machines of scrimp: nobody connects to them"
	if q.Machines() > 1 {
		name, about = name+"-gang", "gangs of scrimp: their machines connect to each other"
	}
	id, err := p.GroupNamed(ctx, a, vpc, name)
	if err != nil || id != "" {
		return id, err
	}
	in := &ec2.CreateSecurityGroupInput{GroupName: &name, Description: &about, VpcId: &vpc,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup,
			Tags: tag.Of(map[string]string{tag.Engine: p.engine, "Name": name})}}}
	out, err := a.EC2.CreateSecurityGroup(ctx, in)
	if err != nil && account.CodeOf(err) != "InvalidGroup.Duplicate" {
		return "", err
	}
	if err == nil {
		id = sdk.ToString(out.GroupId)
	} else if id, err = p.GroupNamed(ctx, a, vpc, name); err != nil || id == "" { // another server has created it
		return "", orRetry(err, "the security group "+name+" is not listed yet")
	}
	if q.Machines() > 1 {
		_, err = a.EC2.AuthorizeSecurityGroupIngress(ctx, &ec2.AuthorizeSecurityGroupIngressInput{GroupId: &id,
			IpPermissions: []types.IpPermission{{IpProtocol: sdk.String("-1"),
				UserIdGroupPairs: []types.UserIdGroupPair{{GroupId: &id}}}}})
		if err != nil && account.CodeOf(err) != "InvalidPermission.Duplicate" {
			return "", err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[vpc+"/"+name] = id
	return id, nil
}

// GroupNamed returns the id of a security group by name; empty if there is none.
func (p *Preparer) GroupNamed(ctx context.Context, a *account.Client, vpc, name string) (string, error) {
	p.mu.Lock()
	id, has := p.groups[vpc+"/"+name]
	p.mu.Unlock()
	if has {
		return id, nil
	}
	out, err := a.EC2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{
		{
			Name:   sdk.String("group-name"),
			Values: []string{name},
		}, {Name: sdk.String("vpc-id"), Values: []string{vpc}}}})
	if err != nil || len(out.SecurityGroups) == 0 {
		return "", err
	}
	id = sdk.ToString(out.SecurityGroups[0].GroupId)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups[vpc+"/"+name] = id
	return id, nil
}

// orRetry returns err, or an error that tells the caller to retry.
func orRetry(err error, why string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: scrimp tries again", why)
}

// placement returns the placement group of a request; empty if it has none. Types that do not support clusters have
// none. A reserved machine is in its reservation's group, if that has one.
func (p *Preparer) placement(q *engine.Request, s *sale.Sale) string {
	if s.Held != nil {
		return s.Held.Place
	}
	if q.Machines() < 2 || p.with.Placement == "none" || p.with.Placement == "cluster" && !s.Kind.Cluster {
		return ""
	}
	sum := sha256.Sum256([]byte(q.Key))
	return "scrimp-" + p.engine + "-" + hex.EncodeToString(sum[:10])
}

// Placed creates the placement group of a request.
func (p *Preparer) Placed(ctx context.Context, a *account.Client, q *engine.Request, s *sale.Sale) error {
	name := p.placement(q, s)
	if name == "" || s.Held != nil { // a reservation's group already exists
		return nil
	}
	tags := tag.Owner(p.engine, q)
	maps.Copy(tags, q.Tags)
	tags[tag.Key] = q.Key
	_, err := a.EC2.CreatePlacementGroup(ctx, &ec2.CreatePlacementGroupInput{GroupName: &name,
		Strategy: types.PlacementStrategy(p.with.Placement),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypePlacementGroup,
			Tags: tag.Of(tags)}}})
	if account.CodeOf(err) == "InvalidPlacementGroup.Duplicate" {
		return nil
	}
	return err
}

// holds sets in a launch template where its machines may run. An on-demand machine takes no place in an open
// reservation of the account: it would cost twice, as reserved and as on-demand.
func (p *Preparer) holds(data *types.RequestLaunchTemplateData, s *sale.Sale) {
	switch {
	case s.Held != nil:
		data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: sdk.String(s.Held.ID)}}
		if s.Held.Block {
			data.InstanceMarketOptions = &types.LaunchTemplateInstanceMarketOptionsRequest{
				MarketType: types.MarketTypeCapacityBlock}
		}
	case s.Offer.Capacity == market.OnDemand && len(p.with.Reservations) > 0:
		data.CapacityReservationSpecification = &types.LaunchTemplateCapacityReservationSpecificationRequest{
			CapacityReservationPreference: types.CapacityReservationPreferenceNone}
	}
}

// token returns the client token of a key after n answered fleets. EC2 carries out a request with the same token
// once.
func token(key string, n int) string {
	sum := sha256.Sum256([]byte(key + "\x00" + strconv.Itoa(n)))
	return "scrimp-" + hex.EncodeToString(sum[:20])
}

// FleetOf returns the request for a fleet from pools, after a number of answered fleets with the same key.
func (p *Preparer) FleetOf(q *engine.Request, asked int, pools []sale.Sale, s *sale.Sale,
	t Template) *ec2.CreateFleetInput {
	machines := sdk.Int32(int32(q.Machines())) // all or none: MinTargetCapacity
	tags := p.tagsOfMachines(q, s)
	var overrides []types.FleetLaunchTemplateOverridesRequest
	for _, w := range pools {
		over := types.FleetLaunchTemplateOverridesRequest{InstanceType: types.InstanceType(w.Kind.Name),
			SubnetId: sdk.String(w.Zone.Subnet)}
		if name := p.placement(q, s); name != "" {
			over.Placement = &types.Placement{GroupName: &name}
		}
		if s.Offer.Capacity == market.Spot && q.MaxRate > 0 {
			over.MaxPrice = sdk.String((q.MaxRate - w.Rates.Disk - w.Rates.Address).String())
		}
		overrides = append(overrides, over)
	}
	in := &ec2.CreateFleetInput{Type: types.FleetTypeInstant, ClientToken: sdk.String(token(q.Key, asked)),
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: tag.Of(tags)},
		},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: machines}}
	if s.Offer.Capacity == market.Spot {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{
			AllocationStrategy:     types.SpotAllocationStrategyPriceCapacityOptimized,
			SingleAvailabilityZone: sdk.Bool(true),
			SingleInstanceType:     sdk.Bool(true),
			MinTargetCapacity:      machines,
		}
	} else {
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeOnDemand
		in.OnDemandOptions = &types.OnDemandOptionsRequest{SingleAvailabilityZone: sdk.Bool(true),
			SingleInstanceType: sdk.Bool(true), MinTargetCapacity: machines}
	}
	in.LaunchTemplateConfigs = []types.FleetLaunchTemplateConfigRequest{{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
			LaunchTemplateName: sdk.String(t.name),
			Version:            sdk.String("$Default"),
		},
		Overrides: overrides}}
	return in
}

// InBlock returns the request for machines in a Capacity Block, after a number of answered requests with the same key.
func (p *Preparer) InBlock(q *engine.Request, asked int, s *sale.Sale, t Template,
	group string) *ec2.RunInstancesInput {
	machines := sdk.Int32(int32(q.Machines()))
	in := &ec2.RunInstancesInput{MinCount: machines, MaxCount: machines, ClientToken: sdk.String(token(q.Key, asked)),
		InstanceType: types.InstanceType(s.Kind.Name), LaunchTemplate: &types.LaunchTemplateSpecification{
			LaunchTemplateName: sdk.String(t.name), Version: sdk.String("$Default")},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: tag.Of(p.tagsOfMachines(q, s))},
			// The tags of a request replace those of its template.
			{ResourceType: types.ResourceTypeVolume, Tags: tag.Of(tag.Owner(p.engine, q))},
			{ResourceType: types.ResourceTypeNetworkInterface, Tags: tag.Of(tag.Owner(p.engine, q))}}}
	if s.Held.Place != "" {
		in.Placement = &types.Placement{GroupName: &s.Held.Place}
	}
	if p.with.PublicIP == nil {
		in.SubnetId = &s.Zone.Subnet
		return in
	}
	in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: sdk.Int32(0),
		DeleteOnTermination: sdk.Bool(true), AssociatePublicIpAddress: p.with.PublicIP, Groups: []string{group},
		SubnetId: &s.Zone.Subnet}} // the interface carries the subnet
	return in
}
