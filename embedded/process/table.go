package process

// kind is what an option takes.
type kind uint8

const (
	toggle kind = iota // nothing; in a file true or false
	text
	number
	list  // texts, given more than once or separated by commas
	pairs // NAME=VALUE, given more than once
	level // verbose: nothing, v's, or a number
)

// where an option exists.
type where uint8

const (
	onMongod where = 1 << iota
	onMongos
	onBoth = onMongod | onMongos
)

// option is a row of mongod's and mongos's own options. Those that nothing
// here reads are accepted, since they say nothing about what a client sees.
type option struct {
	name  string
	short string // one letter
	// path in a YAML file. With a constant, the option is given there by this
	// value; otherwise by any.
	path, constant string
	kind           kind
	where          where
}

// options of the versions played, old and new spellings. Sources: the manual's
// pages on mongod, mongos and configuration files.
var optionTable = []option{
	{name: "help", short: "h", kind: toggle, where: onBoth},
	{name: "version", kind: toggle, where: onBoth},
	{name: "config", short: "f", kind: text, where: onBoth},
	{name: "configExpand", kind: text, where: onBoth},
	{name: "outputConfig", kind: toggle, where: onBoth},

	// Ours.
	{name: "utrServerVersion", kind: text, where: onBoth},

	// Log.
	{name: "verbose", short: "v", path: "systemLog.verbosity", kind: level, where: onBoth},
	{name: "quiet", path: "systemLog.quiet", kind: toggle, where: onBoth},
	{name: "logpath", path: "systemLog.path", kind: text, where: onBoth},
	{name: "logappend", path: "systemLog.logAppend", kind: toggle, where: onBoth},
	{name: "logRotate", path: "systemLog.logRotate", kind: text, where: onBoth},
	{name: "syslog", path: "systemLog.destination", constant: "syslog", kind: toggle, where: onBoth},
	{name: "logToFile", path: "systemLog.destination", constant: "file", kind: toggle, where: onBoth},
	{name: "syslogFacility", path: "systemLog.syslogFacility", kind: text, where: onBoth},
	{name: "timeStampFormat", path: "systemLog.timeStampFormat", kind: text, where: onBoth},
	{name: "traceExceptions", path: "systemLog.traceAllExceptions", kind: toggle, where: onBoth},

	// Network.
	{name: "port", path: "net.port", kind: number, where: onBoth},
	{name: "bind_ip", path: "net.bindIp", kind: list, where: onBoth},
	{name: "bind_ip_all", path: "net.bindIpAll", kind: toggle, where: onBoth},
	{name: "ipv6", path: "net.ipv6", kind: toggle, where: onBoth},
	{name: "listenBacklog", path: "net.listenBacklog", kind: number, where: onBoth},
	{name: "maxConns", path: "net.maxIncomingConnections", kind: number, where: onBoth},
	{name: "maxIncomingConnectionsOverride", path: "net.maxIncomingConnectionsOverride", kind: list, where: onBoth},
	{name: "networkMessageCompressors", path: "net.compression.compressors", kind: text, where: onBoth},
	{name: "objcheck", path: "net.wireObjectCheck", constant: "true", kind: toggle, where: onBoth},
	{name: "noobjcheck", path: "net.wireObjectCheck", constant: "false", kind: toggle, where: onBoth},
	{name: "nounixsocket", path: "net.unixDomainSocket.enabled", constant: "false", kind: toggle, where: onBoth},
	{name: "unixsocket", path: "net.unixDomainSocket.enabled", constant: "true", kind: toggle, where: onBoth},
	{name: "unixSocketPrefix", path: "net.unixDomainSocket.pathPrefix", kind: text, where: onBoth},
	{name: "filePermissions", path: "net.unixDomainSocket.filePermissions", kind: text, where: onBoth},
	{name: "transportLayer", path: "net.transportLayer", kind: text, where: onBoth},
	{name: "serviceExecutor", path: "net.serviceExecutor", kind: text, where: onBoth},
	{name: "proxyPort", path: "net.proxyPort", kind: number, where: onBoth},

	// TLS, and its old spelling.
	{name: "tlsOnNormalPorts", kind: toggle, where: onBoth},
	{name: "tlsMode", path: "net.tls.mode", kind: text, where: onBoth},
	{name: "tlsCertificateKeyFile", path: "net.tls.certificateKeyFile", kind: text, where: onBoth},
	{name: "tlsCertificateKeyFilePassword", path: "net.tls.certificateKeyFilePassword", kind: text, where: onBoth},
	{name: "tlsClusterFile", path: "net.tls.clusterFile", kind: text, where: onBoth},
	{name: "tlsClusterPassword", path: "net.tls.clusterPassword", kind: text, where: onBoth},
	{name: "tlsCAFile", path: "net.tls.CAFile", kind: text, where: onBoth},
	{name: "tlsClusterCAFile", path: "net.tls.clusterCAFile", kind: text, where: onBoth},
	{name: "tlsCRLFile", path: "net.tls.CRLFile", kind: text, where: onBoth},
	{name: "tlsDisabledProtocols", path: "net.tls.disabledProtocols", kind: text, where: onBoth},
	{name: "tlsAllowConnectionsWithoutCertificates", path: "net.tls.allowConnectionsWithoutCertificates", kind: toggle, where: onBoth},
	{name: "tlsAllowInvalidCertificates", path: "net.tls.allowInvalidCertificates", kind: toggle, where: onBoth},
	{name: "tlsAllowInvalidHostnames", path: "net.tls.allowInvalidHostnames", kind: toggle, where: onBoth},
	{name: "tlsLogVersions", path: "net.tls.logVersions", kind: text, where: onBoth},
	{name: "tlsCertificateSelector", path: "net.tls.certificateSelector", kind: text, where: onBoth},
	{name: "tlsClusterCertificateSelector", path: "net.tls.clusterCertificateSelector", kind: text, where: onBoth},
	{name: "tlsFIPSMode", path: "net.tls.FIPSMode", kind: toggle, where: onBoth},
	{name: "sslOnNormalPorts", kind: toggle, where: onBoth},
	{name: "ssl", kind: toggle, where: onBoth},
	{name: "sslMode", path: "net.ssl.mode", kind: text, where: onBoth},
	{name: "sslPEMKeyFile", path: "net.ssl.PEMKeyFile", kind: text, where: onBoth},
	{name: "sslPEMKeyPassword", path: "net.ssl.PEMKeyPassword", kind: text, where: onBoth},
	{name: "sslClusterFile", path: "net.ssl.clusterFile", kind: text, where: onBoth},
	{name: "sslClusterPassword", path: "net.ssl.clusterPassword", kind: text, where: onBoth},
	{name: "sslCAFile", path: "net.ssl.CAFile", kind: text, where: onBoth},
	{name: "sslClusterCAFile", path: "net.ssl.clusterCAFile", kind: text, where: onBoth},
	{name: "sslCRLFile", path: "net.ssl.CRLFile", kind: text, where: onBoth},
	{name: "sslDisabledProtocols", path: "net.ssl.disabledProtocols", kind: text, where: onBoth},
	{name: "sslWeakCertificateValidation", path: "net.ssl.weakCertificateValidation", kind: toggle, where: onBoth},
	{name: "sslAllowConnectionsWithoutCertificates", path: "net.ssl.allowConnectionsWithoutCertificates", kind: toggle, where: onBoth},
	{name: "sslAllowInvalidCertificates", path: "net.ssl.allowInvalidCertificates", kind: toggle, where: onBoth},
	{name: "sslAllowInvalidHostnames", path: "net.ssl.allowInvalidHostnames", kind: toggle, where: onBoth},
	{name: "sslFIPSMode", path: "net.ssl.FIPSMode", kind: toggle, where: onBoth},

	// Process.
	{name: "fork", path: "processManagement.fork", kind: toggle, where: onBoth},
	{name: "pidfilepath", path: "processManagement.pidFilePath", kind: text, where: onBoth},
	{name: "timeZoneInfo", path: "processManagement.timeZoneInfo", kind: text, where: onBoth},
	{name: "setParameter", path: "setParameter", kind: pairs, where: onBoth},
	{name: "nohttpinterface", kind: toggle, where: onBoth},
	{name: "httpinterface", kind: toggle, where: onBoth},
	{name: "rest", kind: toggle, where: onMongod},
	{name: "jsonp", kind: toggle, where: onBoth},
	{name: "enableFreeMonitoring", path: "cloud.monitoring.free.state", kind: text, where: onMongod},
	{name: "freeMonitoringTag", path: "cloud.monitoring.free.tags", kind: text, where: onMongod},

	// Security.
	{name: "auth", path: "security.authorization", constant: "enabled", kind: toggle, where: onMongod},
	{name: "noauth", path: "security.authorization", constant: "disabled", kind: toggle, where: onMongod},
	{name: "keyFile", path: "security.keyFile", kind: text, where: onBoth},
	{name: "clusterAuthMode", path: "security.clusterAuthMode", kind: text, where: onBoth},
	{name: "clusterIpSourceAllowlist", path: "security.clusterIpSourceAllowlist", kind: list, where: onBoth},
	{name: "clusterIpSourceWhitelist", path: "security.clusterIpSourceWhitelist", kind: list, where: onBoth},
	{name: "transitionToAuth", path: "security.transitionToAuth", kind: toggle, where: onBoth},
	{name: "noscripting", path: "security.javascriptEnabled", constant: "false", kind: toggle, where: onBoth},
	{name: "scripting", path: "security.javascriptEnabled", constant: "true", kind: toggle, where: onBoth},
	{name: "redactClientLogData", path: "security.redactClientLogData", kind: toggle, where: onBoth},
	{name: "enableEncryption", path: "security.enableEncryption", kind: toggle, where: onMongod},
	{name: "encryptionKeyFile", path: "security.encryptionKeyFile", kind: text, where: onMongod},

	// Replication and sharding.
	{name: "replSet", path: "replication.replSetName", kind: text, where: onMongod},
	{name: "oplogSize", path: "replication.oplogSizeMB", kind: number, where: onMongod},
	{name: "oplogMinRetentionHours", path: "storage.oplogMinRetentionHours", kind: text, where: onMongod},
	{name: "enableMajorityReadConcern", path: "replication.enableMajorityReadConcern", kind: text, where: onMongod},
	{name: "replIndexPrefetch", path: "replication.secondaryIndexPrefetch", kind: text, where: onMongod},
	{name: "localPingThresholdMs", path: "replication.localPingThresholdMs", kind: number, where: onMongos},
	{name: "localThreshold", kind: number, where: onMongos},
	{name: "configsvr", path: "sharding.clusterRole", constant: "configsvr", kind: toggle, where: onMongod},
	{name: "shardsvr", path: "sharding.clusterRole", constant: "shardsvr", kind: toggle, where: onMongod},
	{name: "archiveMovedChunks", path: "sharding.archiveMovedChunks", kind: toggle, where: onMongod},
	{name: "moveParanoia", kind: toggle, where: onMongod},
	{name: "noMoveParanoia", kind: toggle, where: onMongod},
	{name: "configdb", path: "sharding.configDB", kind: text, where: onMongos},
	{name: "chunkSize", path: "sharding.chunkSize", kind: number, where: onMongos},

	// Storage.
	{name: "dbpath", path: "storage.dbPath", kind: text, where: onMongod},
	{name: "directoryperdb", path: "storage.directoryPerDB", kind: toggle, where: onMongod},
	{name: "syncdelay", path: "storage.syncPeriodSecs", kind: text, where: onMongod},
	{name: "storageEngine", path: "storage.engine", kind: text, where: onMongod},
	{name: "repair", kind: toggle, where: onMongod},
	{name: "upgrade", kind: toggle, where: onBoth},
	{name: "restore", kind: toggle, where: onMongod},
	{name: "shutdown", kind: toggle, where: onMongod},
	{name: "journal", path: "storage.journal.enabled", constant: "true", kind: toggle, where: onMongod},
	{name: "dur", kind: toggle, where: onMongod},
	{name: "nojournal", path: "storage.journal.enabled", constant: "false", kind: toggle, where: onMongod},
	{name: "nodur", kind: toggle, where: onMongod},
	{name: "journalCommitInterval", path: "storage.journal.commitIntervalMs", kind: number, where: onMongod},
	{name: "journalOptions", kind: number, where: onMongod},
	{name: "noIndexBuildRetry", kind: toggle, where: onMongod},
	{name: "notablescan", kind: toggle, where: onMongod},
	{name: "quota", path: "storage.quota.enforced", kind: toggle, where: onMongod},
	{name: "quotaFiles", path: "storage.quota.maxFilesPerDB", kind: number, where: onMongod},
	{name: "smallfiles", path: "storage.mmapv1.smallFiles", kind: toggle, where: onMongod},
	{name: "noprealloc", path: "storage.mmapv1.preallocDataFiles", kind: toggle, where: onMongod},
	{name: "nssize", path: "storage.mmapv1.nsSize", kind: number, where: onMongod},
	{name: "inMemorySizeGB", path: "storage.inMemory.engineConfig.inMemorySizeGB", kind: text, where: onMongod},
	{name: "wiredTigerCacheSizeGB", path: "storage.wiredTiger.engineConfig.cacheSizeGB", kind: text, where: onMongod},
	{name: "wiredTigerCacheSizePct", path: "storage.wiredTiger.engineConfig.cacheSizePct", kind: text, where: onMongod},
	{name: "wiredTigerStatisticsLogDelaySecs", path: "storage.wiredTiger.engineConfig.statisticsLogDelaySecs", kind: number, where: onMongod},
	{name: "wiredTigerJournalCompressor", path: "storage.wiredTiger.engineConfig.journalCompressor", kind: text, where: onMongod},
	{name: "wiredTigerDirectoryForIndexes", path: "storage.wiredTiger.engineConfig.directoryForIndexes", kind: toggle, where: onMongod},
	{name: "wiredTigerMaxCacheOverflowFileSizeGB", path: "storage.wiredTiger.engineConfig.maxCacheOverflowFileSizeGB", kind: text, where: onMongod},
	{name: "wiredTigerEngineConfigString", path: "storage.wiredTiger.engineConfig.configString", kind: text, where: onMongod},
	{name: "zstdDefaultCompressionLevel", path: "storage.wiredTiger.engineConfig.zstdCompressionLevel", kind: number, where: onMongod},
	{name: "wiredTigerCollectionBlockCompressor", path: "storage.wiredTiger.collectionConfig.blockCompressor", kind: text, where: onMongod},
	{name: "wiredTigerCollectionConfigString", path: "storage.wiredTiger.collectionConfig.configString", kind: text, where: onMongod},
	{name: "wiredTigerIndexPrefixCompression", path: "storage.wiredTiger.indexConfig.prefixCompression", kind: text, where: onMongod},
	{name: "wiredTigerIndexConfigString", path: "storage.wiredTiger.indexConfig.configString", kind: text, where: onMongod},

	// Diagnostics.
	{name: "profile", path: "operationProfiling.mode", kind: text, where: onMongod},
	{name: "slowms", path: "operationProfiling.slowOpThresholdMs", kind: number, where: onBoth},
	{name: "slowOpSampleRate", path: "operationProfiling.slowOpSampleRate", kind: text, where: onBoth},
	{name: "profileFilter", path: "operationProfiling.filter", kind: text, where: onMongod},
	{name: "cpu", kind: toggle, where: onMongod},
	{name: "sysinfo", kind: toggle, where: onMongod},
	{name: "diaglog", kind: number, where: onMongod},
	{name: "test", kind: toggle, where: onMongos},
}

// inertParameters are parameters of the server that nothing here depends on.
// A name that begins with featureFlag is always taken.
var inertParameters = []string{
	"allowDiskUseByDefault", "auditAuthorizationSuccess", "authSchemaVersion", "awsSTSUrl", "balancerMigrationsThrottlingMs",
	"bgSyncOplogFetcherBatchSize", "catalogCacheEvictWithLRU", "changeStreamPreImagesExpireAfterSeconds", "clientCursorMonitorFrequencySecs",
	"clusterAuthMode", "collectionClonerBatchSize", "connPoolMaxConnsPerHost", "connPoolMaxInUseConnsPerHost",
	"coordinateCommitReturnImmediatelyAfterPersistingDecision", "createRollbackDataFiles", "createTimestampSafeUnit",
	"diagnosticDataCollectionDirectoryPath", "diagnosticDataCollectionEnabled", "diagnosticDataCollectionPeriodMillis",
	"disableJavaScriptJIT", "disableLogicalSessionCacheRefresh", "disableNonSSLConnectionLogging", "disableSplitHorizonIPCheck",
	"enableAutoCompaction", "enableDetailedConnectionHealthMetricLogLines", "enableElectionHandoff", "enableFinerGrainedCatalogCacheRefresh",
	"enableFlowControl", "enableInMemoryTransactions", "enableLocalhostAuthBypass", "enableShardedIndexConsistencyCheck",
	"enforceUserClusterSeparation", "featureCompatibilityVersion", "flowControlTargetLagSeconds", "heapProfilingEnabled",
	"hangAnalyzerEnabled", "honorSystemUmask", "indexBuildMinAvailableDiskSpaceMB", "ingressAdmissionsTicketPoolSize",
	"initialSyncMethod", "initialSyncTransientErrorRetryPeriodSeconds", "internalQueryCacheSize", "internalQueryExecYieldIterations",
	"internalQueryFrameworkControl", "internalQueryMaxAllowedDensifyDocs", "internalQueryStatsRateLimit", "jsHeapLimitMB",
	"KeysRotationIntervalSec", "ldapServers", "loadBalancerPort", "loadRoutingTableOnStartup", "logComponentVerbosity",
	"loadShardingStateFromRecoveryDocument", "maxAcceptableLogicalClockDriftSecs",
	"maxBSONDepth", "maxIndexBuildMemoryUsageMegabytes", "maxLogSizeKB", "maxNumActiveUserIndexBuilds", "maxSessions",
	"maxSyncSourceLagSecs", "maxValidateMBperSec", "migrationLockAcquisitionMaxWaitMS", "migrateCloneInsertionBatchDelayMS",
	"minSnapshotHistoryWindowInSeconds", "mirrorReads", "mongosShutdownTimeoutMillisForSignaledShutdown",
	"newLineBetweenLogMessages", "ocspEnabled", "ocspStaplingRefreshPeriodSecs", "ocspValidationRefreshPeriodSecs",
	"oidcIdentityProviders", "oplogFetcherUsesExhaust", "oplogInitialFindMaxSeconds", "opensslCipherConfig",
	"opensslDiffieHellmanParameters", "orphanCleanupDelaySecs", "periodicNoopIntervalSecs", "pipelineLengthLimit",
	"planCacheSize", "processUmask", "queryAnalysisWriterIntervalSecs", "rangeDeleterBatchDelayMS", "readHedgingMode",
	"receiveChunkWaitForRangeDeleterTimeoutMS", "recoverFromOplogAsStandalone", "redactEncryptedFields",
	"replElectionTimeoutOffsetLimitFraction", "replWriterThreadCount", "replWriterMinThreadCount", "reportOpWriteConcernCountersInServerStatus",
	"rollbackTimeLimitSecs", "saslauthdPath", "saslServiceName", "sessionMaxBatchSize", "sessionWriteConcernTimeoutSystemMillis",
	"ShardingTaskExecutorPoolHostTimeoutMS", "ShardingTaskExecutorPoolMaxConnecting", "ShardingTaskExecutorPoolMaxSize",
	"ShardingTaskExecutorPoolMinSize", "ShardingTaskExecutorPoolRefreshRequirementMS", "ShardingTaskExecutorPoolRefreshTimeoutMS",
	"ShutdownTimeoutMillisForSignaledShutdown", "shutdownTimeoutMillisForSignaledShutdown", "skipCorruptDocumentsWhenCloning",
	"skipShardingConfigurationChecks", "spinLockCount", "sslMode", "sslWithholdClientCertificate", "startupAuthSchemaValidation",
	"startupRecoveryForRestore", "storageEngineConcurrentReadTransactions", "storageEngineConcurrentWriteTransactions",
	"storageEngineConcurrencyAdjustmentAlgorithm", "suppressNoTLSPeerCertificateWarning", "syncdelay", "takeUnstableCheckpointOnShutdown",
	"taskExecutorPoolSize", "tcmallocAggressiveMemoryDecommit", "tcmallocMaxTotalThreadCacheBytes", "tcpFastOpenClient",
	"tcpFastOpenQueueSize", "tcpFastOpenServer", "testingDiagnosticsEnabled", "testingSnapshotBehaviorInIsolation",
	"tlsMode", "tlsOCSPStaplingTimeoutSecs", "tlsOCSPVerifyTimeoutSecs", "tlsWithholdClientCertificate", "tlsX509ClusterAuthDNOverride",
	"tlsX509ExpirationWarningThresholdDays", "tlsClusterAuthX509Attributes", "traceExceptions", "traceWriteConflictExceptions",
	"ttlMonitorBatchDeletes", "ttlMonitorSleepSecs", "useSecondaryDelaySecs",
	"waitForSecondaryBeforeNoopWriteMS", "waitForStepDownOnNonCommandShutdown", "warmMinConnectionsInShardingTaskExecutorPoolOnStartup",
	"watchdogPeriodSeconds", "wiredTigerConcurrentReadTransactions", "wiredTigerConcurrentWriteTransactions",
	"wiredTigerCursorCacheSize", "wiredTigerEngineRuntimeConfig", "wiredTigerMaxCacheOverflowSizeGB", "writePeriodicNoops",
}
