//go:build !local

package aws

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/account"
	"scrimp/internal/lib/size"
)

// Tags of everything that scrimp creates. The request's tags are added.
const (
	tagEngine = "scrimp-engine"
	tagKey    = "scrimp-key"
	tagOffer  = "scrimp-offer"
	tagNodes  = "scrimp-nodes"
	tagHeld   = "scrimp-reservation"  // reservation that it was launched into
	tagOf     = "scrimp-installation" // defined by package control, as is tagTimes
	tagTimes  = "scrimp-incarnation"
)

// template is an existing launch template.
type template struct{ id, name string }

// tagsOf converts tags to EC2's form, sorted by name.
func tagsOf(from map[string]string) (list []types.Tag) {
	for _, k := range slices.Sorted(maps.Keys(from)) {
		list = append(list, types.Tag{Key: sdk.String(k), Value: sdk.String(from[k])})
	}
	return list
}

// plain converts tags from EC2's form.
func plain(list []types.Tag) map[string]string {
	m := make(map[string]string, len(list))
	for _, t := range list {
		m[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
	}
	return m
}

// owner returns the tags that name an object's owner.
func (d *Driver) owner(q *engine.Request) map[string]string {
	m := map[string]string{tagEngine: d.name, "Name": "scrimp-" + d.name}
	for _, name := range []string{tagOf, tagTimes} {
		if v, has := q.Tags[name]; has {
			m[name] = v
		}
	}
	return m
}

// tagsOfMachines returns the tags by which any server finds what a request has rented.
func (d *Driver) tagsOfMachines(q *engine.Request, s *sale) map[string]string {
	tags := d.owner(q)
	maps.Copy(tags, q.Tags)
	tags[tagKey], tags[tagOffer], tags[tagNodes] = q.Key, string(q.Offer), strconv.Itoa(q.Machines())
	if s.held != nil {
		tags[tagHeld] = s.held.id
	}
	return tags
}

// templateOf returns the launch template for machines of an image and group. Its name is a digest of its content, so
// that it is created once, and again after any change.
func (d *Driver) templateOf(ctx context.Context, a *account.Client, q *engine.Request, s *sale, group string) (template,
	error) {
	data := d.templateData(q, s, group)
	text, err := json.Marshal(data)
	if err != nil {
		return template{}, fmt.Errorf("write a launch template: %w", err)
	}
	sum := sha256.Sum256(text)
	name := "scrimp-" + d.name + "-" + hex.EncodeToString(sum[:8])
	d.mu.Lock()
	known, has := d.template[name]
	d.mu.Unlock()
	if has {
		return known, nil
	}
	out, err := a.EC2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name,
		LaunchTemplateData: data, ClientToken: &name,
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tagsOf(d.owner(q))},
		}})
	t := template{name: name}
	switch {
	case err == nil:
		t.id = sdk.ToString(out.LaunchTemplate.LaunchTemplateId)
	case account.CodeOf(err) == "InvalidLaunchTemplateName.AlreadyExistsException":
	default:
		return t, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.template[name] = t
	return t, nil
}

// forget drops a template that no longer exists.
func (d *Driver) forget(t template) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.template, t.name)
}

// ownGroupGone reports whether a code says that a security group of scrimp's no longer exists. It then forgets all
// groups, so that the next launch creates them again.
func (d *Driver) ownGroupGone(code string) bool {
	if code != "InvalidGroup.NotFound" || d.with.SecurityGroup != "" {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.groups)
	return true
}

func (d *Driver) templateData(q *engine.Request, s *sale, group string) *types.RequestLaunchTemplateData {
	owner := tagsOf(d.owner(q))
	yes := sdk.Bool(true)
	data := &types.RequestLaunchTemplateData{
		ImageId:                           sdk.String(s.image.ID),
		UserData:                          sdk.String(d.userData(q.Env["SCRIMP_TASK_USER"])),
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
			HttpEndpoint: types.LaunchTemplateInstanceMetadataEndpointStateEnabled,
			HttpTokens:   types.LaunchTemplateHttpTokensStateRequired, HttpPutResponseHopLimit: sdk.Int32(1)},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: sdk.String(s.image.Root),
			Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{DeleteOnTermination: yes, Encrypted: yes,
				VolumeSize: sdk.Int32(int32(d.with.DiskSize / size.GiB)), VolumeType: types.VolumeTypeGp3}}},
	}
	if d.with.PublicIP == nil {
		data.SecurityGroupIds = []string{group}
	} else {
		data.NetworkInterfaces = []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
			{DeviceIndex: sdk.Int32(0),
				DeleteOnTermination: yes, AssociatePublicIpAddress: d.with.PublicIP, Groups: []string{group}},
		}
	}
	d.holds(data, s)
	for _, r := range []types.ResourceType{types.ResourceTypeInstance, types.ResourceTypeVolume,
		types.ResourceTypeNetworkInterface} {
		data.TagSpecifications = append(data.TagSpecifications,
			types.LaunchTemplateTagSpecificationRequest{ResourceType: r, Tags: owner})
	}
	return data
}

// groupOf returns the security group of machines: the configured one, or one without inbound access; for a gang, one
// whose members reach each other.
func (d *Driver) groupOf(ctx context.Context, a *account.Client, q *engine.Request, vpc string) (string, error) {
	if d.with.SecurityGroup != "" {
		return d.with.SecurityGroup, nil
	}
	name, about := "scrimp-"+d.name, "machines of scrimp: nobody connects to them"
	if q.Machines() > 1 {
		name, about = name+"-gang", "gangs of scrimp: their machines connect to each other"
	}
	id, err := d.groupNamed(ctx, a, vpc, name)
	if err != nil || id != "" {
		return id, err
	}
	in := &ec2.CreateSecurityGroupInput{GroupName: &name, Description: &about, VpcId: &vpc,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeSecurityGroup,
			Tags: tagsOf(map[string]string{tagEngine: d.name, "Name": name})}}}
	out, err := a.EC2.CreateSecurityGroup(ctx, in)
	if err != nil && account.CodeOf(err) != "InvalidGroup.Duplicate" {
		return "", err
	}
	if err == nil {
		id = sdk.ToString(out.GroupId)
	} else if id, err = d.groupNamed(ctx, a, vpc, name); err != nil || id == "" { // another server has created it
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
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[vpc+"/"+name] = id
	return id, nil
}

// groupNamed returns the id of a security group by name; empty if there is none.
func (d *Driver) groupNamed(ctx context.Context, a *account.Client, vpc, name string) (string, error) {
	d.mu.Lock()
	id, has := d.groups[vpc+"/"+name]
	d.mu.Unlock()
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
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[vpc+"/"+name] = id
	return id, nil
}

// orRetry returns err, or an error that tells the caller to retry.
func orRetry(err error, why string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: scrimp tries again", why)
}
