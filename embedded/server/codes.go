package server

import (
	"github.com/unified-test-runner/utr/embedded/command"
)

// The error codes that the protocol side itself answers with.
const (
	codeInternal                = 1
	codeBadValue                = 2
	codeFailedToParse           = 9
	codeUnauthorized            = 13
	codeTypeMismatch            = 14
	codeProtocol                = 17
	codeAuthenticationFailed    = 18
	codeIllegalOperation        = 20
	codeAlreadyInitialized      = 23
	codeMaxTimeMSExpired        = 50
	codeCommandNotFound         = 59
	codeInvalidOptions          = 72
	codeShardNotFound           = 70
	codeInvalidNamespace        = 73
	codeNodeNotFound            = 74
	codeNoReplicationEnabled    = 76
	codeUnknownWriteConcern     = 79
	codeInvalidReplicaSetConfig = 93
	codeNotYetInitialized       = 94
	codeUnsatisfiable           = 100
	codeNewConfigIncompatible   = 103
	codeNodeNotElectable        = 104
	codeExceededTimeLimit       = 262
	codeMetadataAppName         = 184
	codeMetadataMutated         = 186
	codeAPIVersion              = 322
	codeAPIStrict               = 323
	codeAPIDeprecation          = 324
	codeAPIRequired             = 498870
	codeUnsupportedOpQuery      = 352
	codeLoadBalancerMismatch    = 354
	codeIngressRateLimit        = 462
	codeNotWritablePrimary      = 10107
	codeNotPrimaryNoSecondary   = 13435
	codeNotPrimaryOrSecondary   = 13436
	codeFailCommandConnection   = 50985
	codeExtraInfoMissing        = 13111
	codeUnknownField            = 40415
	codeClusterTimeTooFar       = 205
	codeValueNegative           = 51024
	codeNoDatabase              = 40571
	codeAPIVersionMissing       = 4886600
	codeStaleConfig             = 13388
	codeNotSecondary            = 95
	codeFailPointSetFailed      = 266
	codeNotInTransaction        = 263
	codeUserExists              = 51003
	codeUserNotFound            = 11
	codeMechanismUnavailable    = 334
	codeInterruptedAtShutdown   = 11600
	codeInterruptedReplication  = 11602
)

// codeName is the name of an error code in a version.
func (p Profile) codeName(code int32) string {
	if p.Wire < 9 {
		if name, ok := codeNamesBefore44[code]; ok {
			return name
		}
	}
	if p.Wire < 25 && code == 64 {
		return "WriteConcernFailed"
	}
	if since, ok := codeSince[code]; ok && p.Wire < since {
		return command.Unnamed(code)
	}
	return command.CodeName(code)
}

// codeSince says from which wire version a name exists, where that matters.
var codeSince = map[int32]int{
	347: 13, 348: 13, 351: 13, 352: 13, 354: 13,
	365: 17, 371: 17, 391: 21, 402: 21, 433: 25, 449: 27, 462: 27,
	40413: 17, 40414: 17, 40415: 17, 50768: 17,
}

// codeNamesBefore44 are the names that were changed for 4.4.
var codeNamesBefore44 = map[int32]string{
	10107: "NotMaster", 13435: "NotMasterNoSlaveOk", 13436: "NotMasterOrSecondary",
}

// in says whether a code is in a category, and known in the version at all.
func (p Profile) in(code int32, category command.Category) bool {
	return p.Wire >= codeSince[code] && category.Has(code)
}
