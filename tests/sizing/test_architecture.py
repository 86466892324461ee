"""What a model is made of: parts summed over its layers."""

from service.sizing.architecture import MATRICES, Architecture, Cut, Layers, Part

NORM = Part("norms", 3, 3, Cut.REPLICATED)
DENSE = (Part("mlp", 50, 50, Cut.TENSOR), NORM)
SPARSE = (Part("routed_experts", 400, 100, Cut.EXPERT), NORM)
MODEL = Architecture(
    embedding=(Part("embedding", 1000, 1000, Cut.TENSOR),),
    layers=(Layers(2, DENSE), Layers(3, SPARSE)),
    head=(NORM,),
    tied_embeddings=True,
    hidden=10,
    vocabulary=100,
    attention_heads=2,
    key_value_heads=1,
    routed_experts=4,
)


def test_totals_are_sums_over_the_layers_in_order_of_appearance() -> None:
    assert list(MODEL.totals().values()) == [
        Part("embedding", 1000, 1000, Cut.TENSOR),
        Part("mlp", 100, 100, Cut.TENSOR),
        Part("norms", 18, 18, Cut.REPLICATED),
        Part("routed_experts", 1200, 300, Cut.EXPERT),
    ]
    assert MODEL.parameters == 2318
    assert MODEL.active_parameters == 1418


def test_layers_come_one_by_one_in_order() -> None:
    assert list(MODEL.each_layer()) == [DENSE, DENSE, SPARSE, SPARSE, SPARSE]
    assert MODEL.layer_count == 5


def test_weights_of_one_kind_may_be_cut_in_two_ways() -> None:
    both = (Part("attention", 5, 5, Cut.REPLICATED), Part("attention", 7, 7, Cut.TENSOR))
    assert MODEL._replace(layers=(Layers(2, both),)).totals()["attention"].parameters == 24


def test_embeddings_and_vectors_are_no_matrices_of_layers() -> None:
    assert MATRICES.isdisjoint({"embedding", "output_head", "norms", "biases"})
