package process_test

import (
	"bufio"
	"encoding/json"
	"os"
)

// eachLine reads requests.
func eachLine(take func(line string)) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		take(lines.Text())
	}
}

func parse(line string) (id int, method string) {
	var m struct {
		ID     int
		Method string
	}
	_ = json.Unmarshal([]byte(line), &m)
	return m.ID, m.Method
}
