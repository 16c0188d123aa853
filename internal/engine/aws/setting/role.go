//go:build !local

package setting

import (
	"errors"
	"fmt"
	"regexp"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine/aws/policy"
)

// roleARN matches the ARN of a role: partition, account, path and name. Source: docs.aws.amazon.com, IAM user guide,
// "IAM identifiers", 2026-11.
var roleARN = regexp.MustCompile(`^arn:(aws|aws-cn|aws-us-gov):iam::([0-9]{12}):role/([A-Za-z0-9_+=,.@/-]+)$`)

// RoleOf parses a role's ARN; it returns an empty Scope for anything else.
func RoleOf(arn string) policy.Scope {
	m := roleARN.FindStringSubmatch(arn)
	if m == nil {
		return policy.Scope{}
	}
	return policy.Scope{Partition: m[1], Account: m[2], JobRole: m[3]}
}

// lends parses the store and its role.
func (w *With) lends() error {
	switch {
	case w.Store == "" && w.JobRole == "":
		return nil
	case w.Store == "":
		return errors.New("with: job_role without store: write the bucket that the role may use, such as " +
			"store: s3://BUCKET?prefix=PREFIX")
	case w.JobRole == "":
		return errors.New("with: store without job_role: write the role that may use the bucket, such as " +
			"job_role: arn:aws:iam::123456789012:role/scrimp-job")
	case RoleOf(w.JobRole).JobRole == "":
		return fmt.Errorf("with: job_role is %q: write the ARN of a role, such as "+
			"arn:aws:iam::123456789012:role/scrimp-job", w.JobRole)
	}
	s, err := scopedcreds.Declared(w.Store, w.Region)
	if err != nil {
		return fmt.Errorf("with: store is %q: %w", w.Store, err)
	}
	w.Bucket = &s
	return nil
}
