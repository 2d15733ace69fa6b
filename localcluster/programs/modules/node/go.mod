module hvpa.test/node

go 1.26.0
