//go:build !local

package aws

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/identity"
)

// Identify implements engine.Identifier.
func (d *Driver) Identify(ctx context.Context, e engine.Evidence) (instance, key string, err error) {
	doc, err := identity.Verify(&d.with, e)
	if err != nil {
		return "", "", err
	}
	a, err := d.connected(ctx)
	if err != nil {
		return "", "", err
	}
	if doc.Account != a.Account || doc.Region != d.with.Region || !instanceID.MatchString(doc.Instance) {
		return "", "", fmt.Errorf("%w: it is of account %q in %q", engine.ErrImpostor, doc.Account, doc.Region)
	}
	list, err := d.describe(ctx, a, &ec2.DescribeInstancesInput{Filters: ids(doc.Instance)})
	switch {
	case err != nil:
		return "", "", d.explain(err)
	case len(list) == 1 && list[0].State == engine.Running:
		return doc.Instance, list[0].Key, nil
	case len(list) == 0 && d.granted(doc.Instance):
		return "", "", fmt.Errorf("EC2 does not list %s yet: scrimp tries again", doc.Instance)
	}
	return "", "", fmt.Errorf("%w: no machine %s of it runs", engine.ErrImpostor, doc.Instance)
}

// Program implements engine.Identifier.
func (d *Driver) Program() string { return d.prepare.Build }
