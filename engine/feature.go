package engine

// Features that the runner itself asks for, by Description.Features. Others
// are for people to read.
const (
	// FeatureEncryption: libmongocrypt and a query analyser are there, so that
	// csfle requirements can be met. Beside it, FeatureLibmongocrypt followed
	// by a version ("libmongocrypt 1.8.0") says which libmongocrypt it is.
	FeatureEncryption    = "csfle"
	FeatureLibmongocrypt = "libmongocrypt "
	// FeatureLogging: tests give log messages (LogReader).
	FeatureLogging = "logging"
	// FeatureReducedHeartbeats: clients through which a test sets fail points
	// are to be given heartbeatFrequencyMS in uriOptions, and
	// minHeartbeatFrequencyMS beside uriOptions (Unified Test Format,
	// "Executing a Test"). Engines without it see to short heartbeats
	// themselves, or wait.
	FeatureReducedHeartbeats = "reduced heartbeats"
)
