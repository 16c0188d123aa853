//go:build !local

package account

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/setting"
)

// The meaning of EC2's error codes for a launch. Source: docs.aws.amazon.com, Amazon EC2 API reference, "Error codes
// for the Amazon EC2 API", and the actions' own pages.
var (
	capacityCodes = []string{"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacityOnHost",
		"InsufficientReservedInstanceCapacity", "InsufficientCapacity", "UnfulfillableCapacity", "Unsupported",
		"UnsupportedOperation", "ReservationCapacityExceeded", "InsufficientFreeAddressesInSubnet",
		"InsufficientAddressCapacity",
		"InsufficientVolumeCapacity"}
	quotaCodes = []string{
		"MaxSpotInstanceCountExceeded",
		"VcpuLimitExceeded",
		"InstanceLimitExceeded",
		"VolumeLimitExceeded",
		"MaxIOPSLimitExceeded",
		"MaxSpotFleetRequestCountExceeded",
		"PlacementGroupLimitExceeded",
		"NetworkInterfaceLimitExceeded",
		"AddressLimitExceeded",
		"InstanceCreditSpecification.NotSupported",
	}
	throttleCodes = []string{"RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException",
		"RequestThrottled", "RequestThrottledException", "TooManyRequestsException", "EC2ThrottledException",
		"BandwidthLimitExceeded", "SlowDown", "PriorRequestNotComplete"}
	DeniedCodes = []string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "OptInRequired",
		"PendingVerification", "Blocked", "OperationNotPermitted"}
	credentialCodes = []string{"AuthFailure", "InvalidClientTokenId", "SignatureDoesNotMatch", "ExpiredToken",
		"ExpiredTokenException", "UnrecognizedClientException", "MissingAuthenticationToken", "IncompleteSignature",
		"InvalidAccessKeyId", "RequestExpired"}
	priceCodes   = []string{"SpotMaxPriceTooLow", "MaxSpotPriceTooLow"}
	requestCodes = []string{
		"InvalidParameterValue",
		"InvalidParameter",
		"InvalidParameterCombination",
		"MissingParameter",
		"UnknownParameter",
		"InvalidSubnetID.NotFound",
		"InvalidSubnetId.NotFound",
		"InvalidGroup.NotFound",
		"InvalidInstanceType",
		"InvalidBlockDeviceMapping",
	}
)

// CodeOf returns the code of an error from EC2; empty for any other error.
func CodeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return ""
}

// SaidBy returns EC2's message without the SDK's additions.
func SaidBy(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode() + ": " + WithoutCipher(e.ErrorMessage())
	}
	return err.Error()
}

// WithoutCipher removes the encoded reason of a denial, which is long and which only the account can read.
func WithoutCipher(text string) string {
	before, _, _ := strings.Cut(text, " Encoded authorization failure message:")
	return before
}

// How long scrimp does not repeat a refused request. scrimp's own back-off covers what EC2 may grant at any time.
const (
	QuotaWait  = 10 * time.Minute // somebody has to raise it, or machines have to end
	deniedWait = 5 * time.Minute
)

// Refused returns the meaning of an EC2 error for a launch; nil if it is not a refusal.
func Refused(name string, w *setting.With, code, text string) error {
	text = WithoutCipher(text)
	switch {
	case slices.Contains(priceCodes, code):
		return fmt.Errorf("%w: %s: %s", engine.ErrPrice, code, text)
	case code == "InsufficientFreeAddressesInSubnet":
		return &engine.RefusalError{
			Err:   fmt.Errorf("%w: %s: %s: use larger subnets", engine.ErrNoCapacity, code, text),
			Scope: "zone",
		}
	case strings.HasPrefix(code, "InvalidCapacityReservation"):
		return fmt.Errorf("%w: %s: %s: the reservation has ended or does not exist: scrimp doctor %s lists the existing ones",
			engine.ErrNoCapacity, code, text, name)
	case slices.Contains(capacityCodes, code):
		return fmt.Errorf("%w: %s: %s", engine.ErrNoCapacity, code, text)
	case slices.Contains(quotaCodes, code):
		return &engine.RefusalError{
			Err: fmt.Errorf("%w: %s: %s: ask for more under Service Quotas in the console of %s, or "+
				"allow other types under with", engine.ErrQuota, code, text, w.Region),
			Scope: "pool",
			Wait:  QuotaWait,
		}
	case slices.Contains(DeniedCodes, code):
		return &engine.RefusalError{
			Err: fmt.Errorf("%w: %s: %s: a policy, a service control policy or a budget action denies "+
				"it: scrimp doctor %s prints the policy that is needed and what is granted of it",
				engine.ErrQuota, code, text, name),
			Scope: "account",
			Wait:  deniedWait,
		}
	case strings.HasPrefix(code, "InvalidGroup") && w.SecurityGroup != "":
		return &engine.RefusalError{Err: fmt.Errorf("%w: %s: %s: write as security_group under with the id of one that "+
			"the subnets' network has", engine.ErrRequest, code, text), Scope: "account", Wait: deniedWait}
	case strings.HasPrefix(code, "InvalidAMIID"):
		return &engine.RefusalError{Err: fmt.Errorf("%w: %s: %s: write under with the id of an AMI that %s has",
			engine.ErrRequest, code, text, w.Region), Scope: "account", Wait: deniedWait}
	case slices.Contains(requestCodes, code):
		return fmt.Errorf("%w: %s: %s: scrimp doctor %s says what does not fit", engine.ErrRequest, code, text, name)
	}
	return nil
}

// OrRefused returns the meaning of an EC2 error for a launch, or the error itself if it does not refuse.
func OrRefused(name string, w *setting.With, err error) error {
	if e := Refused(name, w, CodeOf(err), strings.TrimPrefix(SaidBy(err), CodeOf(err)+": ")); e != nil {
		return e
	}
	return err
}

// Explain adds the meaning of an EC2 error for the named engine, and the fix.
func Explain(name string, w *setting.With, err error) error {
	if err == nil || engine.Refused(err) || errors.Is(err, engine.ErrPending) {
		return err
	}
	switch code := CodeOf(err); {
	case slices.Contains(throttleCodes, code):
		return fmt.Errorf("%w: %s", engine.ErrThrottled, SaidBy(err))
	case code == "RequestExpired" || strings.Contains(SaidBy(err), "Signature expired") ||
		strings.Contains(SaidBy(err), "Signature not yet current"):
		return fmt.Errorf("AWS rejects the time of the request (%s): set this machine's clock", SaidBy(err))
	case slices.Contains(credentialCodes, code):
		return fmt.Errorf(
			"AWS rejects the credentials (%s): renew them (aws sso login, or the keys in the environment or in "+
				"~/.aws/credentials); scrimp reads them again by itself",
			SaidBy(err),
		)
	case code == "OptInRequired":
		return notEnabled(w, err)
	case slices.Contains(DeniedCodes, code):
		return fmt.Errorf(
			"AWS denies this to the user: %s: scrimp doctor %s prints the policy that is needed",
			SaidBy(err),
			name,
		)
	case strings.HasPrefix(code, "InvalidAMIID"):
		return fmt.Errorf("AWS answers %s: write as image under with the id of an AMI that %s has", SaidBy(err),
			w.Region)
	case strings.HasPrefix(code, "InvalidSubnetI"):
		return fmt.Errorf("AWS answers %s: write as subnets under with the ids of subnets that %s has", SaidBy(err),
			w.Region)
	case strings.HasPrefix(code, "InvalidGroup"):
		return fmt.Errorf("AWS answers %s: write as security_group under with the id of one that %s has", SaidBy(err),
			w.Region)
	case code != "":
		return fmt.Errorf("AWS answers %s", SaidBy(err))
	}
	return err
}

// Unanswered reports whether the failed request may have been carried out.
func Unanswered(name string, w *setting.With, err error) bool {
	code := CodeOf(err)
	return Refused(name, w, code, "") == nil && !slices.Contains(throttleCodes, code) &&
		!slices.Contains(credentialCodes, code)
}
