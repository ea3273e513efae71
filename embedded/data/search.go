package data

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
)

// noSearch is what createSearchIndexes, dropSearchIndex, updateSearchIndex and $listSearchIndexes
// return: the deployment has no Atlas Search.
func (d *Data) noSearch(*scope, *args) (bson.D, error) {
	return nil, command.Errorf(command.CodeSearchNotEnabled, "Using Atlas Search Database Commands and the $listSearchIndexes aggregation stage requires additional configuration. "+
		"Please connect to Atlas or an AtlasCLI local deployment to enable. "+
		"For more information on how to connect, see https://dochub.mongodb.org/core/atlas-cli-deploy-local-reqs.")
}
