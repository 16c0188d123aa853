module scrimp

go 1.26.8
